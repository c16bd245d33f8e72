"""Risk classes and effects."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Places, Risk, risk_of
from ironcurtain.command_rules.effects import effects
from ironcurtain.commandline import read_command

PLACES = Places("/home/ann", ["/home/ann/project"], lambda path: path)

TABLE = {
    Risk.READ: r"""
ls
cat x | sort | uniq -c
head -n 5 x 2>/dev/null
git status
git log --oneline -5
git stash list
find . -name x
sed -n 3p x
awk '{print $1}' x
docker ps
systemctl status x
apt list
date +%s
time ls
xargs echo
grep -rn a .
echo $x
[ -f x ]
git branch -a
git config --get user.name
sed 's/a/b/g;5d' x
""",
    Risk.WRITE_INSIDE: r"""
touch x
echo > x
mkdir -p a/b
cp a b
mv a b
sed -i s/a/b/ x
tee x
git add .
git commit -m x
tar xf a.tar
chmod +x a
ln -s a b
git checkout -b x
rsync -a a b
gzip x
find . -fprint x
uniq a b
cp -t a b
""",
    Risk.WRITE_OUTSIDE: r"""
touch /x
echo > ../x
cp a /b
cp -t /b a
cp --target-directory=/b a
sed -i s/a/b/ /x
tee ~/x
tar xf a -C /x
echo > $x
mv /a b
mkdir ~/x
sh -c 'echo > /x'
""",
    Risk.NETWORK: r"""
curl x.example
wget x.example
ssh h ls
scp a h:b
rsync a h:b
git push
git fetch
git clone x
ping h
cat < /dev/tcp/h/80
curl -o /x y
kubectl get pods
nc h 80
""",
    Risk.PRIVILEGE: r"""
sudo ls
doas ls
su -c ls
apt install x
systemctl stop x
chroot x ls
mount x
sudo touch x
docker pull x
""",
    Risk.DESTRUCTIVE: r"""
rm x
rm -rf x
find . -delete
find . -exec rm x {} +
dd of=x
git reset --hard
git push -f
git push origin +x
git clean -fd
git branch -D x
git stash drop
kill 1
shutdown
mkfs.ext4 x
docker rm x
truncate x
shred x
sudo rm x
rsync -a --delete a b
docker system prune
""",
    Risk.UNKNOWN: r"""
unknown
x=1
f() { ls; }; f
ls # x
echo $(date)
./ls
/tmp/ls
$x
make
python3 x
docker run x
git x
git -c a=b status
sort -o x y
sed -i s/a/b/e x
sed '1w x' y
awk 'BEGIN{system(1)}'
xargs
eval $x
a | sh
ls `
man -P x y
tar --to-command=x -xf y
date -s x
git diff --ext-diff
git log --output=x
curl -K x
wget -e x y
rsync -e x a h:b
bash x
source x
rg --pre x y
find . -files0-from x
git fetch ext::x
sudo unknown
curl --new-option x
npm test
git grep -Ox a
""",
}
"""Commands by class, one a line."""


class RiskTests(SynchronousTestCase):
    """:func:`risk_of`"""

    def test_classes(self) -> None:
        for risk, block in TABLE.items():
            for command in block.strip().splitlines():
                self.assertIs(risk_of(read_command(command), PLACES), risk, command)

    def test_the_most_severe_part_counts(self) -> None:
        self.assertIs(risk_of(read_command("ls; touch /x && curl x | tee y; rm z"), PLACES), Risk.DESTRUCTIVE)
        self.assertIs(risk_of(read_command("rm z || unknown"), PLACES), Risk.UNKNOWN)

    def test_files(self) -> None:
        (command,) = read_command("cp -r a b /c").commands
        (found,) = effects(command)
        self.assertEqual([word.text for word in found.reads], ["a", "b"])
        self.assertEqual([word.text for word in found.writes], ["/c"])
        self.assertTrue(found.reads_trees)
        (command,) = read_command("curl -d @a -o b -T c -H 'X: @d' x.example y.example").commands
        (found,) = effects(command)
        self.assertEqual([word.text for word in found.reads], ["c", "a", "d"])
        self.assertEqual([word.text for word in found.writes], ["b"])
        self.assertEqual([word.text for word in found.addresses], ["x.example", "y.example"])
