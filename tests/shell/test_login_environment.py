"""The environment of a login shell: what desktops, CI systems, editors and containers set changes no answer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.secrets.redaction import Redactor
from ironcurtain.shell.scrubbing import Scrubber

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
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "XDG_SESSION_TYPE": "wayland",
}

FILES = ("account.json", "askpass.sh", "agent.sock", "gpg-agent")


class LoginEnvironmentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="my project "))
        self.addCleanup(shutil.rmtree, self.place)
        (self.place / ".password-store").mkdir()
        for name in FILES:
            (self.place / name).touch()
        self.environ = {name: value.replace(PLACE, str(self.place)) for name, value in HARMLESS.items()}
        values = "\n".join(self.environ.values())
        self.text = f"directory: {self.place}\n{self.place}/src/main.py:3: error\n{values}\n"

    def test_no_variable_alone_hides_text(self) -> None:
        for name, value in self.environ.items():
            self.assertEqual(Scrubber(Redactor(), {name: value}).text(self.text), self.text, name)

    def test_all_variables_together_hide_nothing(self) -> None:
        self.assertEqual(Scrubber(Redactor(), self.environ).text(self.text), self.text)

    def test_records_keep_the_paths(self) -> None:
        for name in ("PWD", "pwd", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "PASSWORD_STORE_DIR"):
            record = {name: self.environ.get(name, str(self.place))}
            self.assertEqual(Redactor().value(record), record, name)

    @given(st.lists(st.sampled_from(sorted(HARMLESS)), unique=True))
    def test_secrets_beside_them_stay_hidden(self, names: list[str]) -> None:
        environ = {name: self.environ[name] for name in names}
        secrets = {
            "MY_TOKEN": "opensesame-4711",
            "DB_PASSWORD": "/not/a/path/but/a/password",
            "PGPASSWORD": "hunter2hunter2",
        }
        scrubber = Scrubber(Redactor(), {**environ, **secrets})
        for name, value in secrets.items():
            self.assertNotIn(value, scrubber.text(f"printed {value} here"), name)
