"""Older forms of formats: V8's CPU profile as a tree, Gecko's profile inside of what Firefox's DevTools saved."""

HEAD = b"""{"head":{"functionName":"(root)","url":"","lineNumber":-1,"bailoutReason":"","id":1,"scriptId":0,"hitCount":0,"children":[
{"functionName":"","url":"","lineNumber":0,"id":2,"hitCount":0,"children":[{"functionName":"a","url":"/app.js","lineNumber":4,"id":3,"hitCount":1,"children":[]},
{"children":[{"functionName":"d","url":"/app.js","lineNumber":13,"hitCount":2,"children":[],"id":5}],"functionName":"c","url":"/app.js","lineNumber":9,"hitCount":0,"id":4}]}]},
"startTime":163,"endTime":164,"samples":[3,5,5],"timestamps":[163000100,163000200,163000350,163000400]}"""


def tree(say, wick, write, refused, damage, step):
    last = HEAD.replace(b",163000400]", b"]").replace(b'"endTime":164', b'"endTime":163.0005')
    hits = HEAD[:HEAD.index(b'"startTime"')] + b'"x":0}'
    for case, data, words, wanted in (("stacks", HEAD, [], b"(anonymous);a 100000\n(anonymous);c;d 200000\n"), ("until the end", last, [], b"(anonymous);a 100000\n(anonymous);c;d 300000\n"), ("hits", hits, [], b"(anonymous);a 1\n(anonymous);c;d 2\n")):
        done = wick("fold", "-q", *words, write("tree.cpuprofile", data))
        say(done.stdout == wanted, f"cpuprofile as a tree/{case}", (done.stdout + done.stderr).decode())
    refused("cpuprofile as a tree/a node that is not there", HEAD.replace(b"[3,5,5]", b"[3,9,5]"), "node 9")
    refused("cpuprofile as a tree/a time too few", HEAD.replace(b"[3,5,5]", b"[3,5,5,5,5]"), "samples but")
    refused("cpuprofile as a tree/200,000 nodes in each other, cut", b'{"head":' + b'{"functionName":"f","hitCount":1,"children":[' * 200000, "byte ")
    damage("cpuprofile", HEAD, step)


def wrapped(say, wick, write, plain):
    """The same stacks and times as without the wrapper."""
    saved = b'{"label":"x","duration":3.5,"markers":[],"frames":[],"profile":' + plain + b',"version":3}'
    for words in ([], ["--time", "1,2"], ["--by", "label:process"]):
        one, other = (wick("fold", "-q", *words, write("wrapped.json", data)).stdout for data in (plain, saved))
        say(one and one == other, f"gecko/saved by DevTools{' '.join(['', *words])}", other.decode())
