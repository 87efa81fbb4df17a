# Text: regular expressions, counters, templates, unicode, files, CSV and JSON.
# %%
import collections
import csv
import io
import json
import re
import string
import textwrap

text = "It was the best of times, it was the worst of times, it was the age of wisdom"
word = re.compile(r"\w+")
counts = collections.Counter(word.findall(text.lower()))
counts.most_common(3)
# %%
counts.update("times times".split())
match = re.search(r"(?P<what>best|worst) of (\w+)", text)
print(match.group("what"), match.span(2), counts["times"])
# %%
index = collections.defaultdict(list)
for position, token in enumerate(word.findall(text)):
    index[token.lower()].append(position)
index["was"]
# %%
index["new"]
print(sorted(index)[:4], index["new"], match.groups(), match.re is word)
# %%
template = string.Template("$name is $age")
people = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 41}]
lines = [template.substitute(person) for person in people]
lines
# %%
with open("people.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, ["name", "age"])
    writer.writeheader()
    writer.writerows(people)
print(open("people.csv").read())
# %%
handle = open("people.csv")
header = handle.readline()
# %%
rest = handle.readlines()
print(header.strip(), rest, handle.tell(), handle.closed)
# %%
handle.seek(0)
table = list(csv.DictReader(handle))
handle.close()
table
# %%
buffer = io.StringIO()
json.dump({"people": people, "n": 2}, buffer, indent=1)
# %%
buffer.write("\n# end")
print(buffer.getvalue(), buffer.tell())
# %%
log = open("log.txt", "a+")
log.write("first\n")
# %%
log.write("second\n")
log.flush()
log.seek(0)
print(log.read().splitlines(), handle.closed)
# %%
wrapper = textwrap.TextWrapper(width=30)
caesar = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[3:] + "abc")
print(wrapper.fill(text), text[:10].translate(caesar), "ß".upper(), "\u0301".isprintable(), sep="\n")
# %%
chars = (c for c in text if c.isupper())
first = next(chars)
ordered = collections.OrderedDict(sorted(counts.items()))
ordered.move_to_end("age")
print(first, list(ordered)[-1], list(chars))
