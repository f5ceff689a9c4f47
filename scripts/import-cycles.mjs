/**
 * Counts the import cycles in the sources of all packages, between files and between folders, type
 * imports and lazy imports included, and checks the layers below. The files directly in a folder
 * are a node of their own, apart from its subfolders. Prints the counts, and fails when one is
 * above 0. `node scripts/import-cycles.mjs [DIRECTORY]` checks another tree.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'rolldown/utils';
import { layers } from './layers.mjs';

const root = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));
const { imports, unresolved } = readImports();
const cycles = cyclesOf(imports);
const { cycles: folderCycles, examples: folderImports } = folderCyclesOf(imports);
const subtreeCycles = [...foldersWithFiles()].flatMap((folder) => {
  const { imports: between, examples } = importsInside(folder);
  return cyclesOf(between).map((names) => ({ folder, names, examples }));
});
const violations = Object.entries(layers).flatMap(([folder, rule]) => layerErrors(folder, rule));

for (const files of cycles) {
  console.log(`import cycle of ${files.length} files: ${pathAround(files, imports).join(' -> ')}`);
}
for (const folders of folderCycles) {
  console.log(`import cycle of folders: ${folders.join(', ')}`);
  printExamples(folders, folderImports);
}
for (const { folder, names, examples } of subtreeCycles) {
  console.log(`import cycle of folders in ${folder}: ${names.toSorted().join(', ')}`);
  printExamples(names, examples);
}
for (const problem of [...violations, ...unresolved]) console.log(problem);
console.log(
  `${imports.size} files, ${cycles.length} import cycles, ${folderCycles.length} folder cycles ` +
    `(${folderCycles.flat().length} folders), ${violations.length} imports against the layers`,
);
const problems = [cycles, folderCycles, subtreeCycles, violations, unresolved].flat().length;
if (imports.size === 0) console.log('No source files found.');
process.exitCode = problems > 0 || imports.size === 0 ? 1 : 0;

function printExamples(names, examples) {
  for (const from of names) {
    for (const to of names) {
      if (examples.has(`${from} ${to}`)) console.log(`  ${examples.get(`${from} ${to}`)}`);
    }
  }
}

/** Cycles of folders; a folder stands for the files directly in it. */
function folderCyclesOf(files) {
  const between = new Map();
  const examples = new Map();
  for (const [file, targets] of files) {
    const from = dirname(file);
    if (!between.has(from)) between.set(from, new Set());
    for (const target of targets) {
      const to = dirname(target);
      if (to === from) continue;
      between.get(from).add(to);
      examples.set(`${from} ${to}`, `${file} imports ${target}`);
    }
  }
  const found = cyclesOf(between).map((folders) => folders.toSorted());
  return { cycles: found.toSorted((a, b) => (a[0] < b[0] ? -1 : 1)), examples };
}

/** Every source file with the source files that it imports. Paths are relative to the root. */
function readImports() {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  const files = packages.flatMap(sourceFiles);
  const known = new Set(files);
  const entries = new Map(packages.flatMap(packageEntries));
  const unresolved = [];
  const imports = new Map(
    files.map((file) => {
      const found = new Set();
      for (const specifier of specifiersIn(file)) {
        const target = resolve(file, specifier, known, entries);
        if (target === undefined) unresolved.push(`${file} imports ${specifier}: no such file`);
        else if (target !== '') found.add(target);
      }
      return [file, found];
    }),
  );
  return { imports, unresolved };
}

/** Tests are left out: nothing imports them, and they may import everything. */
function sourceFiles(directory) {
  const source = join(directory, 'src');
  if (!existsSync(join(root, source))) return [];
  return readdirSync(join(root, source), { recursive: true })
    .map((name) => join(source, name).replaceAll('\\', '/'))
    .filter((file) => /\.tsx?$/.test(file) && !/\.(test|test-support|d)\.tsx?$/.test(file));
}

/** The names under which other packages import this one, with the source file of each. */
function packageEntries(directory) {
  const manifest = join(root, directory, 'package.json');
  if (!existsSync(manifest)) return [];
  const { name, exports = {} } = JSON.parse(readFileSync(manifest, 'utf8'));
  return Object.entries(exports).flatMap(([path, { 'millrace-source': source }]) => {
    if (source === undefined) return [];
    if (!path.includes('*')) return [[name + path.slice(1), join(directory, source)]];
    const home = join(directory, source.slice(0, source.indexOf('*')));
    return sourceFiles(directory).map((file) => [
      name + path.slice(1).replace('*', file.slice(home.length).replace(/\.tsx?$/, '')),
      file,
    ]);
  });
}

function specifiersIn(file) {
  const { program, errors } = parseSync(file, readFileSync(join(root, file), 'utf8'));
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0].message}`);
  const specifiers = [];
  const add = ({ source }) => {
    if (source?.type === 'Literal') specifiers.push(source.value);
  };
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(program);
  return specifiers;
}

/** The imported source file; '' when it is not one of ours, undefined when it does not exist. */
function resolve(file, specifier, known, entries) {
  if (entries.has(specifier)) return entries.get(specifier);
  if (!specifier.startsWith('.')) return '';
  const target = join(dirname(file), specifier);
  const [stem] = target.split(/\.jsx?$/);
  const found = [`${stem}.ts`, `${stem}.tsx`, target].find((candidate) => known.has(candidate));
  return found ?? (existsSync(join(root, target)) ? '' : undefined);
}

function foldersWithFiles() {
  const folders = new Set();
  for (const file of imports.keys()) {
    const parts = file.split('/');
    for (let length = 3; length < parts.length; length++) {
      folders.add(parts.slice(0, length).join('/'));
    }
  }
  return folders;
}

/** Imports between the folders directly below `folder`, each with one example. */
function importsInside(folder) {
  const childOf = (file) => {
    const rest = file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split('/') : [];
    return rest.length > 1 ? rest[0] : undefined;
  };
  const between = new Map();
  const examples = new Map();
  for (const [file, targets] of imports) {
    const from = childOf(file);
    if (from === undefined) continue;
    if (!between.has(from)) between.set(from, new Set());
    for (const target of targets) {
      const to = childOf(target);
      if (to === undefined || to === from) continue;
      between.get(from).add(to);
      examples.set(`${from} ${to}`, `${file} imports ${target}`);
    }
  }
  return { imports: between, examples };
}

function layerErrors(folder, { order = [], apart = [] }) {
  const { imports: between, examples } = importsInside(folder);
  const layerOf = new Map(order.flatMap((names, layer) => names.map((name) => [name, layer])));
  const errors = [];
  for (const [from, targets] of between) {
    if (order.length > 0 && !layerOf.has(from)) {
      errors.push(`${folder}/${from} has no layer: add it to scripts/layers.mjs`);
    }
    for (const to of targets) {
      const isUpward = layerOf.get(to) > layerOf.get(from);
      const isAcross = apart.includes(from) && apart.includes(to);
      if (isUpward || isAcross) errors.push(`${examples.get(`${from} ${to}`)}: against the layers`);
    }
  }
  return errors;
}

/** Strongly connected components with more than one node, by Tarjan's algorithm. */
function cyclesOf(graph) {
  const index = new Map();
  const low = new Map();
  const stack = [];
  const found = [];
  const visit = (node) => {
    index.set(node, index.size);
    low.set(node, index.get(node));
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node), low.get(next)));
    }
    if (low.get(node) !== index.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    if (component.length > 1 || graph.get(node)?.has(node)) found.push(component);
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return found;
}

/** A shortest way from the first node of a cycle back to itself. */
function pathAround([start, ...rest], graph) {
  const inside = new Set([start, ...rest]);
  const paths = [[start]];
  const seen = new Set();
  for (const path of paths) {
    for (const next of graph.get(path.at(-1))) {
      if (next === start) return [...path, start];
      if (!inside.has(next) || seen.has(next)) continue;
      seen.add(next);
      paths.push([...path, next]);
    }
  }
  return [start];
}
