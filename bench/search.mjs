import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { installPeers, presentEngines, versionOf } from './engine/peers.mjs';
import { heading, Results } from './shared/results.mjs';

export const summary = 'text search beside FTS5 and MiniSearch, vectors beside sqlite-vec';

export const options = {
  documents: { type: 'string', default: '100000', help: 'Documents, and vectors' },
  dims: { type: 'string', default: '384', help: 'Dimensions of the vectors' },
  samples: { type: 'string', default: '200', help: 'Updates and queries of each' },
  truths: { type: 'string', default: '10', help: 'Queries whose recall is measured' },
  only: { type: 'string', default: '', help: 'text or vectors' },
  install: { type: 'boolean', default: false, help: 'Install the peers first' },
  publish: { type: 'boolean', default: false, help: 'Write bench/results/search.md' },
};

const program = fileURLToPath(new URL('search/contestants.mjs', import.meta.url));
const kinds = {
  text: ['millrace', 'fts5', 'minisearch'],
  vectors: ['millrace', 'sqlite-vec'],
};

export async function run({ args, report, note, machine, root }) {
  const { values } = parseArgs({ args, options });
  const count = Number(values.documents);
  const common = { count, samples: Number(values.samples), dims: Number(values.dims) };
  if (values.install) installPeers(note);
  const hasSqlite = presentEngines(['sqlite'], note).length > 0;
  const isPresent = (name) =>
    name === 'millrace' ||
    ((name === 'minisearch' || hasSqlite) && (name === 'fts5' || versionOf(name) !== undefined));
  const lines = heading({ title: 'Search', name: 'search', args, machine });
  for (const [kind, all] of Object.entries(kinds)) {
    if (values.only !== '' && values.only !== kind) continue;
    const names = all.filter(isPresent);
    const results = new Results();
    for (const name of names) {
      note(`${kind}: ${name} ...`);
      const task = { ...common, kind: kind === 'text' ? 'text' : 'vector', name };
      const figures = await inProcess({ ...task, truths: Number(values.truths) });
      for (const [measure, value] of Object.entries(figures)) results.add(measure, name, value);
    }
    const shape =
      kind === 'text' ? '66 words each' : `${common.dims} random dimensions each, cosine`;
    const title = `${kind}: ${count.toLocaleString('en')} documents, ${shape}`;
    report(title, results.table(names));
    lines.push('', `## ${title}`, '', ...tableOf(results, names));
  }
  if (values.publish) writeFileSync(join(root, 'bench/results/search.md'), `${lines.join('\n')}\n`);
}

function tableOf(results, names) {
  const rows = results.table(names).map((row) => `| ${Object.values(row).join(' | ')} |`);
  return [`| | ${names.join(' | ')} |`, `| --- |${' ---: |'.repeat(names.length)}`, ...rows];
}

function inProcess(task) {
  return new Promise((resolve, reject) => {
    const child = fork(program, [JSON.stringify(task)], { execArgv: ['--expose-gc'] });
    let figures;
    child.on('message', (message) => (figures = message));
    child.on('error', reject);
    child.on('exit', (code) => {
      if (figures) resolve(figures);
      else reject(new Error(`${task.name} ended with code ${code}`));
    });
  });
}
