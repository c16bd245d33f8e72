"""The environment of a login shell: what desktops, CI systems, editors and containers set."""

from __future__ import annotations

from pathlib import Path

PLACE = "{place}"
"""Stands for an existing directory with a blank in its name."""

HARMLESS = {
    "BROWSER": "/usr/bin/firefox",
    "BUILDKITE": "true",
    "CI": "true",
    "CIRCLECI": "true",
    "CODESPACES": "true",
    "COLORTERM": "truecolor",
    "COLUMNS": "120",
    "CONDA_PREFIX": f"{PLACE}/conda",
    "container": "docker",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "DESKTOP_SESSION": "plasma",
    "DISPLAY": ":0",
    "DOCKER_HOST": "unix:///run/user/1000/docker.sock",
    "EDITOR": "code --wait",
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKSPACE": PLACE,
    "GITLAB_CI": "true",
    "GIT_ASKPASS": f"{PLACE}/askpass.sh",
    "GNOME_KEYRING_CONTROL": PLACE,
    "GOOGLE_APPLICATION_CREDENTIALS": f"{PLACE}/account.json",
    "GOPATH": f"{PLACE}/go",
    "GPG_AGENT_INFO": f"{PLACE}/gpg-agent:0:1",
    "GPG_TTY": "/dev/pts/0",
    "HISTFILE": f"{PLACE}/.zsh_history",
    "HOME": PLACE,
    "HOSTNAME": "workstation",
    "JAVA_HOME": "/usr/lib/jvm/default",
    "KRB5CCNAME": "FILE:/tmp/krb5cc_1000",
    "LANG": "de_DE.UTF-8",
    "LANGUAGE": "de:en",
    "LC_ALL": "tr_TR.UTF-8",
    "LOGNAME": "ada",
    "LS_COLORS": "rs=0:di=01;34",
    "MAIL": "/var/mail/ada",
    "NVM_DIR": f"{PLACE}/.nvm",
    "OLDPWD": "/removed/since then",
    "PAGER": "less -R",
    "PASSWORD_STORE_DIR": f"{PLACE}/.password-store",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PIPELINE_WORKSPACE": PLACE,
    "PNPM_HOME": f"{PLACE}/pnpm",
    "PS1": "\\u@\\h:\\w\\$ ",
    "PWD": PLACE,
    "PYENV_ROOT": f"{PLACE}/.pyenv",
    "PYTHONPATH": "/opt/ros/lib:",
    "QT_QPA_PLATFORM": "wayland",
    "SESSION_MANAGER": "local/workstation:@/tmp/.ICE-unix/1,unix/workstation:/tmp/.ICE-unix/1",
    "SHELL": "/bin/zsh",
    "SHLVL": "2",
    "SSH_AGENT_PID": "4242",
    "SSH_AUTH_SOCK": f"{PLACE}/agent.sock",
    "SSH_CONNECTION": "192.0.2.1 51000 192.0.2.2 22",
    "SUDO_USER": "ada",
    "TERM": "xterm-256color",
    "TERM_PROGRAM": "vscode",
    "TERM_SESSION_ID": "w0t1p0:1F2E3D4C",
    "TMPDIR": f"{PLACE}/tmp",
    "TMUX": "/tmp/tmux-1000/default,1234,0",
    "TZ": "Europe/Berlin",
    "USER": "ada",
    "VIRTUAL_ENV": f"{PLACE}/.venv",
    "VSCODE_GIT_ASKPASS_NODE": "/usr/share/code/code",
    "WAYLAND_DISPLAY": "wayland-0",
    "WSL_DISTRO_NAME": "Ubuntu",
    "XAUTHORITY": f"{PLACE}/.Xauthority",
    "XDG_CONFIG_HOME": f"{PLACE}/.config",
    "XDG_DATA_DIRS": "/usr/local/share:/usr/share",
    "XDG_RUNTIME_DIR": f"{PLACE}/run",
    "XDG_SESSION_TYPE": "wayland",
}

FILES = ("account.json", "askpass.sh", "agent.sock", "gpg-agent")

DIRECTORIES = (".config", ".password-store", "run", "tmp")
"""Those that only their owner may enter."""


def login_environ(place: Path) -> dict[str, str]:
    """
    :param place: a directory, preferably with a blank in its name, that gets the files which variables name.
    :returns: the whole environment.
    """
    for name in DIRECTORIES:
        (place / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in FILES:
        (place / name).touch()
    return {name: value.replace(PLACE, str(place)) for name, value in HARMLESS.items()}
