/*
 * What the picture and the page do alike with names. They search them; and they shorten long ones, as src/stacks/names_wick.c does: template
 * arguments as ‹…›, then without the middle, so that the function's own name survives.
 */
const angled = "(?:<=>|<<=|>>=|->\\*|<<|>>|<=|>=|->|\\(\\)|\\[\\]|<|>)";
const angledOperator = new RegExp("^operator" + angled);
const beforeTemplate = new RegExp("(?:[\\w$\\u0080-\\uffff]|\\w::|operator[=!+\\-*/%&|^~,]+|operator" + angled + " ?)$");
const goShape = "[go.shape.";
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

function closingSquare(name, from) {
  let depth = 0;
  for (let i = from; i < name.length; i++) {
    if (name[i] === "[") depth++;
    else if (name[i] === "]" && --depth === 0) return i;
  }
  return -1;
}

export function foldedName(name) {
  let out = "";
  if ((!name.includes("<") && !name.includes(goShape)) || name.length > foldable) return name;
  for (let i = 0; i < name.length;) {
    const operator = name[i] === "o" && !/\w$/.test(out) && angledOperator.exec(name.slice(i, i + 11));
    const isShape = name[i] === "[" && name.startsWith(goShape, i) && /\w$/.test(out);
    const close = isShape ? closingSquare(name, i) : name[i] === "<" && beforeTemplate.test(out.slice(-20)) ? closingAngle(name, i) : -1;
    const taken = close >= 0 ? isShape ? "[…]" : "‹…›" : operator ? operator[0] : name[i];
    out += taken;
    i = close >= 0 ? close + 1 : i + taken.length;
  }
  return out;
}

// A compiler's mark for a part or a variant of a function.
const variant = /^(?:isra|part|constprop|cold|llvm|clone|lto_priv|abi|\d)/;
const isFile = name => name.startsWith("/") || name.startsWith("../") || /:\d[^:]*$/.test(name);

// Where the function's own name begins, after its namespaces, types and packages. A closure has no name but that of the function around it.
function ownName(name) {
  let depth = 0, own = 0, dotted = 0, inClosure = false;
  for (let i = 0; i < name.length; i++) {
    if ("<({[".includes(name[i])) depth++;
    else if (">)}]".includes(name[i])) depth = Math.max(0, depth - 1);
    else if (!depth && name.startsWith("::", i) && i + 2 < name.length) {
      const isClosure = name[i + 2] === "{";
      if (!inClosure && !isClosure) own = i + 2;
      inClosure = isClosure;
    } else if (!depth && i && name[i] === "." && i + 1 < name.length && !variant.test(name.slice(i + 1, i + 10))) dotted = i + 1;
  }
  if (!isFile(name)) return own || dotted;
  const slash = name.lastIndexOf("/") + 1; // JavaScript's `render /app/page.js:12` begins with the function
  return slash && slash < name.length && !name.includes(" ") ? slash : own;
}

export const hasParts = name => name.length <= foldable && (/^[^<]*[A-Za-z0-9]</.test(name) || ownName(name) > 0);

// Names that are nothing but a word lose their end; the others lose their middle, and then all but their own name.
export function shortName(name, room) {
  if (!hasParts(name)) {
    const letters = [...name.slice(0, 2 * room + 4)];
    return letters.length <= room ? letters.join("") : letters.slice(0, room - 2).join("") + "..";
  }
  if ([...name].length <= room) return name;
  const folded = foldedName(name), letters = [...folded], own = ownName(folded), last = own ? [...folded.slice(own)] : [];
  if (letters.length <= room) return folded;
  if (last.length > room) return last.slice(0, room - 1).join("") + "…";
  const tail = own ? last.length : Math.floor(room / 2);
  return (tail + 2 <= room ? letters.slice(0, room - 1 - tail).join("") + "…" : "") + letters.slice(letters.length - tail).join("");
}

// Show a name in an element, shortened to its width if it does not fit: the font has letters of one width.
export function fitName(element, name, before = "") {
  element.textContent = before + name;
  if (element.scrollWidth <= element.clientWidth) return;
  const room = Math.floor(element.clientWidth * [...before + name].length / element.scrollWidth) - before.length;
  element.textContent = before + shortName(name, Math.max(8, room));
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
