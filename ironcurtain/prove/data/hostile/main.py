def main():
    for group, what, function in ATTEMPTS:
        try:
            if what in TARGETS["unlimited"]:
                outcome, detail = "not limited", TARGETS["unlimited"][what]
            elif what in TARGETS["untried"]:
                outcome, detail = "not tried", "this machine has too little free memory to tell"
            else:
                function()
                outcome, detail = "succeeded", ""
        except SystemError as e:
            outcome, detail = "succeeded", str(e)
        except Refused as e:
            outcome, detail = "failed", str(e)
        except OSError as e:
            outcome, detail = "failed", e.strerror or str(e)
        except BaseException as e:
            outcome, detail = "failed", f"{type(e).__name__}: {e}"
        print(json.dumps({"group": group, "what": what, "outcome": outcome, "detail": detail[:200]}), flush=True)
    for name in os.listdir(WORK):
        if name.startswith("prove-"):
            place = os.path.join(WORK, name)
            shutil.rmtree(place) if os.path.isdir(place) and not os.path.islink(place) else os.unlink(place)
    print(json.dumps({"end": len(ATTEMPTS)}), flush=True)


main()
