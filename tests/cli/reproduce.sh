# `selkie reproduce`: runs, their reuse, the report, and what is refused.
. "$(dirname "$0")/common.sh"

expect "an unknown paper" 2 "did you mean 'idp'" reproduce ipd
expect "an unknown figure" 2 'figures 3, 4' reproduce idp --figure 77
expect "a figure that is no number" 2 'figures 3, 4' reproduce idp --figure three
check "an empty report" "$selkie" reproduce idp --report-only --figure 9 --out empty
grep -q 'is not finished' empty/report.md && good "an empty report says what is missing" || bad "an empty report says nothing"
check "an empty report of the other paper" "$selkie" reproduce uic --report-only --out empty_uic
grep -q '^## Tables 3.1 and 3.2' empty_uic/report.md && good "it has its tables" || bad "it has no tables"

check "an empty report of a third one" "$selkie" reproduce liquid_boundary --report-only --out empty_liquid
grep -q '^## Section 5.2' empty_liquid/report.md && good "it has its sections" || bad "it has no sections"

check "figure 9, quick" "$selkie" reproduce idp --quick --figure 9 --out nine --threads 2
for file in report.md report.html runs/rabbit_idp/finished runs/rabbit_flip/finished; do
    [ -s "nine/$file" ] && good "$file is there" || bad "$file is missing"
done
grep -q '^| push-out (IDP) |' nine/report.md && good "the table has its row" || bad "no row in the table"
for picture in $(grep -o '](\S*\.png)' nine/report.md | tr -d '()]'); do
    [ -s "nine/$picture" ] || bad "picture $picture is missing"
    grep -q "src=\"$picture\"" nine/report.html || bad "picture $picture is not in the HTML"
done
[ "$(grep -c '!\[' nine/report.md)" -ge 8 ] && good "pictures are there" || bad "fewer than 8 pictures"
if command -v xmllint >/dev/null; then
    check "the HTML can be read" xmllint --html --noout nine/report.html
fi

cp nine/report.md before.md
touch -d '2 hours ago' nine/runs/rabbit_idp/stats.csv
check "once more" "$selkie" reproduce idp --quick --figure 9 --out nine --threads 2
[ -n "$(find nine/runs/rabbit_idp/stats.csv -mmin +60)" ] && good "a finished run is used again" || bad "a finished run was simulated again"
cmp -s before.md nine/report.md && good "the report is the same" || bad "the report has changed"

# An interrupted run goes on.
rm -rf nine/runs/rabbit_flip/finished
check "an interrupted run goes on" "$selkie" reproduce idp --quick --figure 9 --out nine --threads 2
[ -s nine/runs/rabbit_flip/finished ] && good "it is finished" || bad "it is not finished"
finish
