/** How long the dashboard takes to show the result of an interaction, with many rows. */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openBrowser } from './dashboard/browser.mjs';
import { interactions } from './dashboard/interactions.mjs';
import { startServers } from './dashboard/servers.mjs';
import { below, heading, markdown, percentile } from './shared/results.mjs';

export const summary =
  'the dashboard in Chromium: first paint, pages, and sort, filter, scroll with many rows';

const maxMs = 100;
const help = `npm run bench -- dashboard [options]

  --rows N    agents, tasks and records (10000)
  --rounds N  repeats of each interaction (15)

The time is measured in the page: from the event to the frame that shows its result. An interaction
that the server takes part in has its answer in it. Needs Chromium, or MILLRACE_TEST_BROWSER.`;

export async function run({ args, root, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: 'string', default: '10000' },
      rounds: { type: 'string', default: '15' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return note(help);
  const [rowCount, rounds] = [Number(values.rows), Number(values.rounds)];
  const browser = await openBrowser();
  if (!browser) return report('Not measured', [{ reason: 'no Chromium was found' }]);
  const [rows, verdicts] = [[], []];
  try {
    const servers = await startServers(root, rowCount);
    note(`${rowCount} rows of each kind stored: load average ${loadavg()[0].toFixed(1)}`);
    try {
      for (const each of interactions(rowCount)) {
        const times = await measure(browser, servers, each, rounds);
        const at = (share) => Number(percentile(times, share).toFixed(1));
        note(`${each.name}: load average ${loadavg()[0].toFixed(1)}`);
        rows.push({ interaction: each.name, 'p50 ms': at(0.5), 'p95 ms': at(0.95) });
        verdicts.push(below(`${each.name}, p95 ms`, each.maxMs ?? maxMs, rows.at(-1)['p95 ms']));
      }
    } finally {
      await servers.stop();
    }
  } finally {
    await browser.close();
  }
  report(`${rowCount} rows, ${rounds} repeats`, rows);
  report('Targets', verdicts);
  if (rounds < 15 || rowCount < 10_000) return;
  writeFileSync(
    join(root, 'bench', 'results', 'dashboard.md'),
    describe({ args, machine, rows, verdicts }),
  );
  note('Written to bench/results/dashboard.md');
}

/** The first one of a page warms it up and does not count. */
async function measure(browser, servers, { path, prepare, act }, rounds) {
  const page = await browser.newPage();
  const times = [];
  try {
    await page.goto(`${servers.url}/#${path}`);
    await prepare(page);
    for (let round = 0; round <= rounds; round++) {
      const tookMs = await act(page, round);
      if (round > 0) times.push(tookMs);
    }
  } finally {
    await page.close();
  }
  return times.toSorted((a, b) => a - b);
}

function describe({ args, machine, rows, verdicts }) {
  return [
    ...heading({ title: 'Dashboard', name: 'dashboard', args, machine }),
    '',
    'In Chromium, from the event to the frame that shows its result, with the answer of the server',
    'where it takes part.',
    '',
    markdown(rows),
    '',
    '## Targets',
    '',
    markdown(verdicts),
    '',
  ].join('\n');
}
