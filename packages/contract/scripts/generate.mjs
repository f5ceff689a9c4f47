/**
 * Generates src/generated/ from the three sources of truth.
 *
 *   node scripts/generate.mjs            write what has changed
 *   node scripts/generate.mjs --check    write nothing, fail and name what is stale
 *   node scripts/generate.mjs db queue   only these (db, queue, daemon)
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as prettier from 'prettier';
import ts from 'typescript';
import { stringify } from 'yaml';
import { buildDocument } from './db-openapi.mjs';
import { buildRoutes } from './db-routes.mjs';
import { filesOf, typesOf } from './http-document.mjs';
import { readModel, reflectionSet } from './proto-model.mjs';

const home = fileURLToPath(new URL('..', import.meta.url));
const generated = join(home, 'src', 'generated');
const protoFile = 'proto/millrace/db/v1/db.proto';
const reasonsFile = 'src/db-reasons.ts';
// Version 1.1 quotes what older parsers would take for a date.
const yamlStyle = {
  version: '1.1',
  lineWidth: 100,
  singleQuote: true,
  aliasDuplicateObjects: false,
};
const targets = ['db', 'queue', 'daemon'];

const wanted = process.argv.slice(2).filter((word) => word !== '--check');
const unknown = wanted.filter((word) => !targets.includes(word));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; choose from ${targets.join(', ')}`);
  process.exit(2);
}
const chosen = wanted.length > 0 ? wanted : targets;

const scratch = mkdtempSync(join(tmpdir(), 'millrace-contract-'));
try {
  const fresh = new Map();
  for (const target of chosen) {
    const files = target === 'db' ? await databaseFiles() : await documentFiles(target);
    for (const [name, content] of files) fresh.set(name, content);
  }
  process.exitCode = process.argv.includes('--check') ? compare(fresh) : write(fresh);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function databaseFiles() {
  buf(
    'build',
    '--as-file-descriptor-set',
    '--exclude-path',
    'proto/queue',
    '-o',
    join(scratch, 'db.binpb'),
  );
  buf('generate', '-o', scratch);
  const files = readTree(join(scratch, 'src', 'generated'));

  const descriptors = readFileSync(join(scratch, 'db.binpb'));
  const model = readModel(descriptors);
  const document = buildDocument(model, await loadReasons());
  const sources = `${protoFile} and ${reasonsFile}`;
  const yaml = stringify(document, yamlStyle);
  files.set('db.binpb', Buffer.from(reflectionSet(descriptors)));
  files.set('db.openapi.yaml', bytes(`# Generated from ${sources}. Do not edit.\n${yaml}`));
  files.set('db.openapi.json', bytes(`${JSON.stringify(document, null, 2)}\n`));
  const { openapi, info, components } = document;
  const schemas = { openapi, info, components: { schemas: components.schemas } };
  files.set('db.rest.ts', await typescript(await typesOf(schemas), sources));
  files.set('db.routes.ts', await typescript(buildRoutes(model), protoFile));
  return files;
}

async function documentFiles(target) {
  const name = `${target}.openapi.yaml`;
  const source = join(home, name);
  if (!existsSync(source)) throw new Error(`${name} is missing`);
  const files = new Map();
  for (const [file, text] of Object.entries(await filesOf(target, readFileSync(source, 'utf8')))) {
    files.set(file, file.endsWith('.ts') ? await typescript(text, name) : bytes(text));
  }
  return files;
}

/** Formatted as the rest of the repository, so that a formatter finds nothing to do. */
async function typescript(text, source) {
  const options = await prettier.resolveConfig(join(home, reasonsFile));
  const header = `// Generated from ${source}. Do not edit.\n`;
  return bytes(await prettier.format(header + text, { ...options, parser: 'typescript' }));
}

/** The reasons are TypeScript without imports, so taking the types off makes them loadable. */
async function loadReasons() {
  const source = readFileSync(join(home, reasonsFile), 'utf8');
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(source, { compilerOptions: options });
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}

function buf(...args) {
  const require = createRequire(import.meta.url);
  const bin = (name, file) => join(dirname(require.resolve(`${name}/package.json`)), file);
  // buf looks its plugins up on the PATH, where npm links them only for `npm run`.
  const links = join(scratch, 'bin');
  mkdirSync(links, { recursive: true });
  const plugin = bin('@bufbuild/protoc-gen-es', 'bin/protoc-gen-es');
  writeFileSync(
    join(links, 'protoc-gen-es'),
    `#!/bin/sh\nexec "${process.execPath}" "${plugin}" "$@"\n`,
    { mode: 0o755 },
  );
  const env = { ...process.env, PATH: `${links}${delimiter}${process.env.PATH ?? ''}` };
  const command = [bin('@bufbuild/buf', 'bin/buf'), ...args];
  const result = spawnSync(process.execPath, command, { cwd: home, env, encoding: 'utf8' });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`buf ${args[0]} failed:\n${result.stderr}`);
}

function bytes(text) {
  return Buffer.from(text, 'utf8');
}

function readTree(folder) {
  const files = new Map();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(path.slice(folder.length + 1).replaceAll(sep, '/'), readFileSync(path));
  }
  return files;
}

/** Which target a file in src/generated/ belongs to. */
function targetOf(name) {
  return targets.find((target) => target !== 'db' && name.startsWith(`${target}.`)) ?? 'db';
}

function staleFiles(fresh) {
  const present = existsSync(generated) ? readTree(generated) : new Map();
  const changed = [...fresh.keys()].filter((name) => !present.get(name)?.equals(fresh.get(name)));
  const orphans = [...present.keys()].filter(
    (name) => !fresh.has(name) && chosen.includes(targetOf(name)),
  );
  return { changed, orphans };
}

function compare(fresh) {
  const { changed, orphans } = staleFiles(fresh);
  for (const name of changed) console.error(`stale: src/generated/${name}`);
  for (const name of orphans) console.error(`no longer generated: src/generated/${name}`);
  if (changed.length + orphans.length === 0) return 0;
  console.error('Run "npm run generate" and commit the result.');
  return 1;
}

function write(fresh) {
  const { changed, orphans } = staleFiles(fresh);
  for (const name of changed) {
    const path = join(generated, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, fresh.get(name));
    console.log(`wrote src/generated/${name}`);
  }
  for (const name of orphans) {
    rmSync(join(generated, name));
    console.log(`removed src/generated/${name}`);
  }
  console.log(`${fresh.size} files, ${changed.length} written, ${orphans.length} removed`);
  return 0;
}
