"""
Credentials of every kind, made up, and what resembles them. They are put together when they are asked for, so that no
scanner finds one in this file.
"""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
WORD = ALNUM + "_-"
BASE64 = ALNUM + "+/"
DIGITS = string.digits

Part = str | tuple[str, int]


class Sample(NamedTuple):
    """
    :param kind: in words.
    :param before: what stands before the secret.
    :param secret: what nobody may see.
    :param after: what stands behind it.
    """

    kind: str
    before: str
    secret: str
    after: str

    @property
    def text(self) -> str:
        """:returns: all of it, as it may stand in a file or a command."""
        return self.before + self.secret + self.after


KEYS: tuple[tuple[str, tuple[Part, ...]], ...] = (
    ("Anthropic", ("sk-ant-api03-", (WORD, 93), "AA")),
    ("Anthropic admin", ("sk-ant-admin01-", (WORD, 93), "AA")),
    ("OpenAI", ("sk-proj-", (WORD, 74), "T3BlbkFJ", (WORD, 74))),
    ("OpenAI, old", ("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20))),
    ("Groq", ("gsk_", (ALNUM, 52))),
    ("Perplexity", ("pplx-", (ALNUM, 48))),
    ("Replicate", ("r8_", (ALNUM, 37))),
    ("Hugging Face", ("hf_", (ALNUM, 34))),
    ("xAI", ("xai-", (ALNUM, 80))),
    ("AWS key id", ("AKIA", (UPPER, 16))),
    ("AWS temporary key id", ("ASIA", (UPPER, 16))),
    ("AWS Bedrock", ("ABSK", (BASE64, 128))),
    ("Google API", ("AIza", (WORD, 35))),
    ("Google OAuth secret", ("GOCSPX-", (WORD, 28))),
    ("Google access token", ("ya29.", (WORD, 60))),
    ("Google refresh token", ("1//0", (WORD, 60))),
    ("Azure AD secret", ("abC", "8", "Q", "~", (WORD, 34))),
    ("Azure DevOps", ((ALNUM, 76), "AZDO", (ALNUM, 4))),
    ("Alibaba key id", ("LTAI", (ALNUM, 20))),
    ("DigitalOcean", ("dop_v1_", (HEX, 64))),
    ("DigitalOcean OAuth", ("doo_v1_", (HEX, 64))),
    ("Heroku", ("HRKU-AA", (WORD, 58))),
    ("Cloudflare origin CA", ("v1.0-", (HEX, 24), "-", (HEX, 146))),
    ("Fly.io", ("fm2_", (BASE64, 120))),
    ("Databricks", ("dapi", (HEX, 32))),
    ("Vault", ("hvs.", (WORD, 95))),
    ("Vault batch", ("hvb.", (WORD, 140))),
    ("Terraform Cloud", ((ALNUM, 14), ".atlasv1.", (WORD, 64))),
    ("Pulumi", ("pul-", (HEX, 40))),
    ("PlanetScale", ("pscale_tkn_", (WORD, 43))),
    ("Supabase", ("sbp_", (HEX, 40))),
    ("Tailscale", ("tskey-auth-", (ALNUM, 12), "-", (ALNUM, 32))),
    ("OpenShift", ("sha256~", (WORD, 43))),
    ("GitHub", ("ghp_", (ALNUM, 36))),
    ("GitHub OAuth", ("gho_", (ALNUM, 36))),
    ("GitHub app", ("ghs_", (ALNUM, 36))),
    ("GitHub, fine-grained", ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    ("GitLab", ("glpat-", (WORD, 20))),
    ("GitLab runner", ("glrt-", (WORD, 20))),
    ("GitLab deploy", ("gldt-", (WORD, 20))),
    ("Bitbucket", ("ATBB", (ALNUM, 32))),
    ("Atlassian", ("ATATT3", (WORD, 186))),
    ("npm", ("npm_", (ALNUM, 36))),
    ("PyPI", ("pypi-AgEIcHlwaS5vcmc", (WORD, 70))),
    ("RubyGems", ("rubygems_", (HEX, 48))),
    ("crates.io", ("cio", (ALNUM, 32))),
    ("NuGet", ("oy2", (LOWER, 43))),
    ("Clojars", ("CLOJARS_", (LOWER, 60))),
    ("Docker Hub", ("dckr_pat_", (WORD, 27))),
    ("Artifactory", ("AKCp", (ALNUM, 69))),
    ("CircleCI", ("CCIPAT_", (ALNUM, 22), "_", (HEX, 40))),
    ("Sentry", ("sntryu_", (HEX, 64))),
    ("Grafana", ("glsa_", (ALNUM, 32), "_", (HEX, 8))),
    ("New Relic", ("NRAK-", (UPPER, 27))),
    ("Sourcegraph", ("sgp_", (HEX, 40))),
    ("Prefect", ("pnu_", (ALNUM, 36))),
    ("Netlify", ("nfp_", (ALNUM, 40))),
    ("Dynatrace", ("dt0c01.", (UPPER, 24), ".", (UPPER, 64))),
    ("Doppler", ("dp.pt.", (LOWER, 43))),
    ("1Password", ("A3-", (UPPER, 6), "-", (UPPER, 11), "-", (UPPER, 5), "-", (UPPER, 5), "-", (UPPER, 5))),
    ("1Password service account", ("ops_eyJ", (BASE64, 260))),
    ("Postman", ("PMAK-", (HEX, 24), "-", (HEX, 34))),
    ("Slack bot", ("xoxb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24))),
    ("Slack user", ("xoxp-", (DIGITS, 12), "-", (DIGITS, 12), "-", (DIGITS, 12), "-", (HEX, 32))),
    ("Slack app", ("xapp-1-", (UPPER, 11), "-", (DIGITS, 12), "-", (HEX, 64))),
    ("Discord bot", ("M", (ALNUM, 23), ".", (WORD, 6), ".", (WORD, 38))),
    ("Telegram bot", ((DIGITS, 10), ":AA", (WORD, 33))),
    ("Twilio", ("SK", (HEX, 32))),
    ("SendGrid", ("SG.", (WORD, 22), ".", (WORD, 43))),
    ("Mailchimp", ((HEX, 32), "-us12")),
    ("Mailgun", ("key-", (HEX, 32))),
    ("Brevo", ("xkeysib-", (HEX, 64), "-", (ALNUM, 16))),
    ("Stripe", ("sk_live_", (ALNUM, 24))),
    ("Stripe, restricted", ("rk_live_", (ALNUM, 24))),
    ("Stripe webhook", ("whsec_", (ALNUM, 32))),
    ("Shopify", ("shpat_", (HEX, 32))),
    ("Shopify shared secret", ("shpss_", (HEX, 32))),
    ("Square", ("sq0csp-", (WORD, 43))),
    ("Razorpay", ("rzp_live_", (ALNUM, 14))),
    ("Shippo", ("shippo_live_", (HEX, 40))),
    ("EasyPost", ("EZAK", (ALNUM, 54))),
    ("Duffel", ("duffel_live_", (WORD, 43))),
    ("Notion", ("ntn_", (DIGITS, 11), (ALNUM, 35))),
    ("Linear", ("lin_api_", (ALNUM, 40))),
    ("Airtable", ("pat", (ALNUM, 14), ".", (HEX, 64))),
    ("Figma", ("figd_", (WORD, 40))),
    ("HubSpot", ("pat-na1-", (HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12))),
    ("MaxMind", ((ALNUM, 6), "_", (ALNUM, 29), "_mmk")),
    ("age", ("AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))),
    ("JSON web token", ("eyJhbGciOiJIUzI1NiJ9.ey", (WORD, 40), ".", (WORD, 43))),
    ("password hash", ("$6$", (ALNUM, 16), "$", (ALNUM, 86))),
    ("private key", ("-----BEGIN RSA PRIVATE KEY-----\n", (BASE64, 64), "\n-----END RSA PRIVATE KEY-----")),
    ("PGP", ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n", (BASE64, 64), "\n-----END PGP PRIVATE KEY BLOCK-----")),
)
"""Kinds that are known by themselves, and what they are made of: texts, or so many characters of an alphabet."""

CONTEXTS: tuple[tuple[str, str, tuple[Part, ...], str], ...] = (
    ("header of an API", "curl -H 'x-api-key: ", ((ALNUM, 24),), "' https://example.org/"),
    ("authorization", "Authorization: ", ("Bearer ", (ALNUM, 24)), "\nAccept: */*"),
    ("authorization, basic", "Authorization: ", ("Basic ", (BASE64, 24)), "\n"),
    ("authorization, plain", "authorization: ", ((ALNUM, 24),), "\n"),
    ("cookie", "Cookie: ", ("session=", (ALNUM, 24), "; csrf=", (ALNUM, 12)), "\nAccept: */*"),
    ("set-cookie", "Set-Cookie: ", ("sid=", (ALNUM, 24), "; Path=/; HttpOnly"), "\n"),
    ("--password", "deploy --password ", ((ALNUM, 7),), " --force"),
    ("--password=", "deploy --db-password=", ((ALNUM, 7),), " --force"),
    ("--token", "tool --api-token '", ((ALNUM, 12),), "' run"),
    ("curl -u", "curl -sS -u ", ("me:", (ALNUM, 7)), " https://example.org/x"),
    ("curl --user", 'curl https://example.org/x --user "', ("me:", (ALNUM, 7)), '"'),
    ("curl -b", "curl -b ", ("sid=", (ALNUM, 20)), " https://example.org/x"),
    ("netrc", "machine example.org login me password ", ((ALNUM, 7),), "\n"),
    ("netrc in lines", "machine example.org\n  login me\n  password ", ((ALNUM, 7),), "\n"),
    ("mysql -p", "mysql -u root -p", ((ALNUM, 9),), " shop"),
    ("mysqldump -p", "mysqldump --host db -p'", ((ALNUM, 9),), "' shop > dump.sql"),
    ("sshpass", "sshpass -p ", ((ALNUM, 9),), " ssh me@example.org"),
    ("docker login", "docker login -u me -p ", ((ALNUM, 9),), " registry.example.org"),
    ("redis-cli", "redis-cli -h cache -a ", ((ALNUM, 9),), " ping"),
    ("openssl", "openssl rsa -in key.pem -passin pass:", ((ALNUM, 9),), " -out x"),
    (
        "Azure storage",
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=",
        ((BASE64, 86), "=="),
        ";Endpoint=x",
    ),
    ("Azure service bus", "Endpoint=sb://shop/;SharedAccessKey=", ((BASE64, 43), "="), ""),
    ("Azure signature", "https://shop.blob.core.windows.net/x?sv=2024&sig=", ((ALNUM, 40), "%3D"), "&se=2026"),
    ("SQL Server", "Server=db;User Id=sa;Password=", ((ALNUM, 9),), ";Encrypt=true"),
    ("SQL Server, short", "Server=db;Uid=sa;Pwd=", ((ALNUM, 9),), ";Encrypt=true"),
    ("URL", "postgres://", ("admin:", (ALNUM, 9)), "@db.example.org/shop"),
    ("URL with a token", "https://", ("oauth2:", (ALNUM, 20)), "@example.org/x.git"),
    ("query", "https://example.org/x?access_token=", ((ALNUM, 20),), "&page=2"),
    ("pgpass", "db.example.org:5432:shop:admin:", ((ALNUM, 9),), "\n"),
    ("Slack webhook", "https://hooks.slack.com/services/", ("T", (UPPER, 8), "/B", (UPPER, 8), "/", (ALNUM, 24)), ""),
    ("Discord webhook", "https://discord.com/api/webhooks/", ((DIGITS, 18), "/", (WORD, 68)), ""),
    ("Telegram URL", "https://api.telegram.org/bot", ((DIGITS, 10), ":AA", (WORD, 33)), "/getMe"),
    ("npmrc", "//registry.npmjs.org/:_authToken=", ((ALNUM, 36),), "\n"),
    ("docker config", '{"auths": {"https://index.docker.io/v1/": {"auth": "', ((BASE64, 24),), '"}}}'),
    ("AWS secret", "aws_secret_access_key = ", ((BASE64, 40),), "\n"),
    ("AWS secret by command", "aws configure set aws_secret_access_key ", ((ALNUM, 40),), ""),
    ("WireGuard", "PrivateKey = ", ((BASE64, 43), "="), "\n"),
    ("environment", "export DB_PASSWORD=", ((ALNUM, 9),), "\n"),
    ("environment, short", "SMTP_PASS='", ((ALNUM, 9),), "'\n"),
    ("YAML", "  client_secret: ", ((ALNUM, 16),), "\n  port: 1"),
    ("words in quotes", 'passphrase = "', ("correct horse battery ", (ALNUM, 8)), '"\n'),
    ("JSON", '{"apiKey": "', ((ALNUM, 16),), '", "page": 1}'),
    ("JSON in JSON", '{\\"password\\": \\"', ((ALNUM, 9),), '\\", \\"page\\": 1}'),
    ("Python", "client = Client(token='", ((ALNUM, 16),), "', retries=3)"),
)
"""Kinds that are known by what stands around them: what stands before, what they are made of, what stands behind."""

INNOCENT = (
    "the password is wrong, and the token was refused: ask for a new secret",
    "Your password: minimum eight characters, one of them a digit",
    "# Passwords and tokens\n\nA password is never stored. See the token bucket algorithm.",
    "use --token to log in, or the --password option",
    "def login(user: str, password: str) -> Token:",
    "tokens: 1234, max_tokens: 128000, token_count=4096",
    "token_type: bearer, password_file=/run/secrets/db, api_key_path: /etc/key",
    'curl -u "$USER:$TOKEN" -H "Authorization: Bearer $TOKEN" https://example.org/',
    "API_TOKEN=${API_TOKEN} PASSWORD=$DB_PASSWORD make",
    "curl -L -o out.tgz https://example.org/a.tgz && mysql --help",
    "mysql -h db -P 3306 -u root -p shop",
    "git clone ssh://git@github.com:22/owner/name.git && git clone https://me@example.org/x.git",
    "https://example.org:8443/path?key=value#part",
    "machine learning with default settings, and a login page with a password field",
    "PWD=/home/me/project OLDPWD=/home/me",
    "skip-this-long-name-of-a-branch task-sk-learn-about-estimators",
    "cookie: yes, cookies: no; the Cookie header is described in RFC 6265",
    "Authorization: required for every request. The authorization endpoint is /authorize.",
    "basic understanding of bearer authentication",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUe\n-----END CERTIFICATE-----",
    "-----BEGIN PGP SIGNATURE-----\n\niQIzBAABCgAdFiEE\n-----END PGP SIGNATURE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq0xQn2Zb7h me@example.org",
    "2026-11-21T09:15:00Z took 1234567 ms, 1700000000000000000 ns",
    "npm_config_cache=/tmp/x hf_hub_download(repo_id) r8_unorm sk_buff pat.match dapi.example.org",
    "from ironcurtain.secrets.redaction import Secret  # os.path, sys.argv, self.secret",
    "order 4111 1111 1111 1112, version 1.2.3.4, 10.0.0.1:5432, 12:34:56",
    "key-value stores, API-first, oauth2, pass, passed, bypass, compass: north",
)
"""Texts that hold no secret, some of them near to one."""


def samples() -> list[Sample]:
    """:returns: one of each kind, the same ones every time."""
    made = random.Random(16)

    def text(parts: tuple[Part, ...]) -> str:
        return "".join(part if isinstance(part, str) else "".join(_of(made, *part)) for part in parts)

    return [
        *(Sample(kind, "", text(parts), "") for kind, parts in KEYS),
        *(Sample(kind, before, text(parts), after) for kind, before, parts, after in CONTEXTS),
    ]


def innocents() -> list[str]:
    """:returns: texts that must stay as they are: those of :data:`INNOCENT`, and others that look random."""
    made = random.Random(17)
    hashes = [hashlib.sha1(made.randbytes(9)).hexdigest() for _ in range(20)]
    integrity = [base64.b64encode(hashlib.sha512(made.randbytes(9)).digest()).decode() for _ in range(20)]
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + made.randbytes(6000)).decode()
    return [
        *INNOCENT,
        *(f"commit {each}\nindex {each[:7]}..{each[7:14]} 100644" for each in hashes),
        *(f'"integrity": "sha512-{each}",' for each in integrity),
        *(f"wheel --hash=sha256:{each}{each[:24]}" for each in hashes),
        *(str(uuid.UUID(bytes=made.randbytes(16))) for _ in range(20)),
        f"data:image/png;base64,{image}",
        "\n".join(image[at : at + 76] for at in range(0, len(image), 76)),
    ]


def _of(made: random.Random, alphabet: str, length: int) -> list[str]:
    # With a digit and a letter, as in nearly all keys, and no punctuation at either end.
    chosen = made.choices(alphabet, k=length)
    for place, char in zip((1, 3), "7x", strict=True):
        if char in alphabet and length > place:
            chosen[place] = char
    if not chosen[0].isalnum():
        chosen[0] = alphabet[0]
    if not chosen[-1].isalnum():
        chosen[-1] = alphabet[0]
    return chosen
