/*
 * What the picture and the page do alike with names. They search them; and they shorten long ones, as src/stacks/names_wick.c does: template
 * arguments as ‹…›, then without the middle, so that the function's own name survives.
 */
const angled = "(?:<=>|<<=|>>=|->\\*|<<|>>|<=|>=|->|\\(\\)|\\[\\]|<|>)";
const angledOperator = new RegExp("^operator" + angled);
const beforeTemplate = new RegExp("(?:[\\w$\\u0080-\\uffff]|\\w::|operator[=!+\\-*/%&|^~,]+|operator" + angled + " ?)$");
const hasParts = /::|^[^<]*[A-Za-z0-9]</;
const foldable = 4000; // longer names are cut as they are

// Where the `<` at `from` is closed, or -1.
function closingAngle(name, from) {
  let angles = 0, round = 0;
  for (let i = from; i < name.length; i++) {
    const c = name[i];
    if (c === "(") round++;
    else if (c === ")") round--;
    else if (round > 0) continue;
    else if (c === "<") angles++;
    else if (c === ">" && name[i - 1] !== "-" && --angles === 0) return i;
  }
  return -1;
}

export function foldedName(name) {
  let out = "";
  if (!name.includes("<") || name.length > foldable) return name;
  for (let i = 0; i < name.length;) {
    const operator = name[i] === "o" && !/\w$/.test(out) && angledOperator.exec(name.slice(i, i + 11));
    const close = name[i] === "<" && beforeTemplate.test(out.slice(-20)) ? closingAngle(name, i) : -1;
    const taken = close >= 0 ? "‹…›" : operator ? operator[0] : name[i];
    out += taken;
    i = close >= 0 ? close + 1 : i + taken.length;
  }
  return out;
}

function ownName(name) {
  let depth = 0, own = 0;
  for (let i = 0; i < name.length; i++) {
    if ("<({[".includes(name[i])) depth++;
    else if (">)}]".includes(name[i])) depth = Math.max(0, depth - 1);
    else if (!depth && name.startsWith("::", i) && i + 2 < name.length) own = i + 2;
  }
  return own;
}

// Names that are nothing but a word lose their end, the others their middle.
export function shortName(name, room) {
  if (name.length > foldable || !hasParts.test(name)) {
    const letters = [...name.slice(0, 2 * room + 4)];
    return letters.length <= room ? letters.join("") : letters.slice(0, room - 2).join("") + "..";
  }
  if ([...name].length <= room) return name;
  const folded = foldedName(name), letters = [...folded], own = ownName(folded);
  if (letters.length <= room) return folded;
  let tail = [...folded.slice(own)].length;
  if (!own || tail + 2 > room) tail = Math.floor(room / 2);
  return letters.slice(0, room - 1 - tail).join("") + "…" + letters.slice(letters.length - tail).join("");
}

// Small letters find large ones, too, unless case is to match; what is no regular expression is looked for as it stands.
export function searchPattern(text, matchCase) {
  const flags = matchCase || /\p{Lu}/u.test(text.replace(/\\./g, "")) ? "" : "i";
  try {
    return {pattern: new RegExp(text, flags), isPlain: false};
  } catch {
    return {pattern: new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags), isPlain: true};
  }
}
