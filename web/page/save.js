// What can be saved: the view as a static SVG, the stacks as folded text.
import { changeWords, inkOn } from "./graph.js";

const escapeXml = text => text.replace(/[<>&"']/g, c => `&#${c.charCodeAt(0)};`).replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)));

export function svgOf(graph, title, unit) {
  const width = 1200, row = 16, letter = 7.08, lines = [];
  let top = 42;
  for (const pane of graph.panes) {
    const s = pane.shape, rows = pane.deepest + 1 - pane.skip, scale = width / (pane.to - pane.from);
    for (let n = 0; n < s.count;) {
      const x = Math.max(0, (s.left[n] - pane.from) * scale), w = Math.min(width, (s.left[n] + s.size[n] - pane.from) * scale) - x;
      if (w < 0.12) {
        n = s.end[n];
        continue;
      }
      const depth = s.depth[n] - pane.skip, y = top + (pane.inverted ? depth : rows - 1 - depth) * row, name = graph.name(pane, n);
      if (depth >= 0) {
        const room = Math.floor((w - 6) / letter), label = name.length <= room ? name : [...name].slice(0, room - 2).join("") + "..";
        const count = value => value.toLocaleString("en"), change = s.before ? "; " + changeWords(s.total[n], s.before[n], s.total[0], s.before[0], count) : "";
        lines.push(`<g><title>${escapeXml(name)} (${count(s.total[n])} ${escapeXml(unit)}, ${(100 * s.total[n] / (s.total[0] || 1)).toFixed(2)}%${change})</title>` +
          `<rect x="${x.toFixed(2)}" y="${y}" width="${w.toFixed(2)}" height="${row - 1}" fill="${graph.colour(pane, n)}"/>` +
          (room >= 3 ? `<text x="${(x + 3).toFixed(2)}" y="${y + 11}"${inkOn(graph.colour(pane, n)) === "#fff" ? ' fill="#fff"' : ""}>${escapeXml(label)}</text>` : "") + "</g>");
      }
      n++;
    }
    top += rows * row + 8;
  }
  return `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top + 8}" viewBox="0 0 ${width} ${top + 8}">\n` +
    `<style>text{font:12px monospace}</style><rect width="100%" height="100%" fill="#fff"/><text x="10" y="26" style="font:600 17px sans-serif">${escapeXml(title)}</text>\n` +
    lines.join("\n") + "\n</svg>\n";
}

// For a diff, append before and after to each stack, including stacks that vanished.
export function foldedOf(model, base) {
  const lines = [], stack = [];
  for (let n = 1; n < base.count; n++) {
    stack.length = base.depth[n] - 1;
    stack.push(model.places[base.place[n]].name.replace(/;/g, ":").replace(/[\n\r]/g, " "));
    if (base.self[n] || (base.before && base.selfBefore[n]))
      lines.push(`${stack.join(";")} ${base.before ? base.selfBefore[n] + " " : ""}${base.self[n]}`);
  }
  return lines.sort((a, b) => a < b ? -1 : a > b ? 1 : 0).join("\n") + "\n";
}

export function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
