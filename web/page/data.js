/*
 * The profile inside the page, unpacked: see src/view/html.c for the packing.
 *
 * Parents precede their children, node 0 is the root, and everything below node n is n + 1 … end[n] - 1. A place is
 * what frames of one function share; a cell is what one series counted on one node.
 */
async function unpack(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function reader(bytes, at) {
  // Shifts would wrap beyond 32 bits, so multiply the rest. Doubles are exact up to the packer's largest number.
  return () => {
    let value = 0, shift = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * shift;
      shift *= 128;
    } while (byte > 127);
    return value;
  };
}

export function decode(bytes) {
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const next = reader(bytes, 4 + length);
  const count = about.nodes + 1;
  const parent = new Int32Array(count), place = new Int32Array(count), depth = new Int32Array(count), end = new Int32Array(count);
  const open = [0];
  parent[0] = place[0] = -1;
  for (let n = 1; n < count; n++) {
    for (let up = next(); up > 0; up--) end[open.pop()] = n;
    place[n] = next();
    parent[n] = open[open.length - 1];
    depth[n] = open.length;
    open.push(n);
  }
  while (open.length) end[open.pop()] = count;
  const cells = {count: about.cells, node: new Int32Array(about.cells), series: new Int32Array(about.cells),
                 samples: new Float64Array(about.cells), weight: new Float64Array(about.cells)};
  for (let i = 0, node = 0; i < about.cells; i++) {
    cells.node[i] = node += next();
    cells.series[i] = next();
    cells.samples[i] = next();
    cells.weight[i] = next();
  }
  const samples = {count: about.samples, time: new Float64Array(about.samples), series: new Int32Array(about.samples),
                   node: new Int32Array(about.samples), weight: new Float64Array(about.samples)};
  for (let i = 0, time = 0; i < about.samples; i++) {
    samples.time[i] = time += next();
    samples.series[i] = next();
    samples.node[i] = next();
    samples.weight[i] = next();
  }
  // Functions are places that share a name.
  const names = new Map(), functionOf = [], functions = [], places = [];
  const addPlace = (name, object, category, colour, kinds, waiting = colour) => {
    let id = names.get(name);
    if (id === undefined) names.set(name, id = functions.push(name) - 1);
    functionOf.push(id);
    return places.push({name, object, category, colour, kinds, waiting}) - 1;
  };
  for (const place of about.places) addPlace(...place);
  // Threads and comms at the root of stacks are not functions, but are drawn like them.
  const groups = new Map();
  const groupPlace = name => {
    if (!groups.has(name)) groups.set(name, addPlace(name, "", "", "#d3dbe4", 0));
    return groups.get(name);
  };
  // Recorded threads can be shown as time on the CPU, off it, or both: a series says which of them it belongs to.
  const times = about.times || [];
  return {about, times, count, parent, place, depth, end, cells, samples, places, functions, functionOf, groupPlace,
          series: about.series, isDiff: about.series.some(s => s.before)};
}

export async function loadProfile(text) {
  return decode(await unpack(text.trim()));
}
