import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { usageScreen } from './usage.js';

type UsageDocument = DaemonSchema<'UsageDocument'>;
type BackendUsage = DaemonSchema<'BackendUsage'>;

const example = contractExample('UsageDocument');
const screen = (document: UsageDocument, columns: number) =>
  usageScreen(document, { columns, paint: plain });

test('at 80 columns there is a row for each window, and the reason below', () => {
  expect(screen(example, 80)).toBe(
    `
BACKEND  STATUS        WINDOW         USED     RESETS
claude   unavailable   5-hour window  unknown  unknown
         seen 20m ago  5-hour window  41%      in 2h 30m
codex    ok            5-hour window  12.5%    in 3h 30m
                       Weekly window  63%      in 3d 15h
claude: the provider answered 503.
`.slice(1),
  );
});

test('at 140 columns there is room for a bar', () => {
  expect(screen(example, 140)).toBe(
    `
BACKEND  STATUS        WINDOW         USED                           RESETS
claude   unavailable   5-hour window  unknown                        unknown
         seen 20m ago  5-hour window  41%      #########...........  in 2h 30m
codex    ok            5-hour window  12.5%    ###.................  in 3h 30m
                       Weekly window  63%      #############.......  in 3d 15h
claude: the provider answered 503.
`.slice(1),
  );
});

/** An entry with one window used so much. */
function used(percent: number | null): BackendUsage {
  const codex = example.backends[1]!;
  return { ...codex, usage: [{ ...codex.usage[0]!, used_percent: percent, resets_at: null }] };
}

test('only what is full looks full, and what is unknown does not look empty', () => {
  const figures = [0, 0.04, 1, 99.96, 100, 104.25, null].map((percent) => {
    const [, row] = screen({ ...example, backends: [used(percent)] }, 140).split('\n');
    return row!.replace(/^.*?window +/, '').replace(/ +unknown$/, '');
  });
  expect(figures).toEqual([
    '0%    ....................',
    '0%    #...................',
    '1%    #...................',
    '99.9%  ###################.',
    '100%  ####################',
    '104.3%  ####################',
    'unknown',
  ]);
});

test('a backend without windows and one that cannot be asked have a row of their own', () => {
  const entry = example.backends[1]!;
  const backends: BackendUsage[] = [
    { ...entry, id: 'opencode', status: 'unsupported', usage: [], error: 'no way' },
  ];
  expect(screen({ ...example, backends }, 80)).toBe(
    'BACKEND   STATUS       WINDOW  USED  RESETS\nopencode  unsupported  -\nopencode: no way.\n',
  );
});

test('a reset that has passed is due', () => {
  const entry = example.backends[1]!;
  const usage = [{ ...entry.usage[0]!, resets_at: '2026-01-15T09:29:59.000Z' }];
  expect(screen({ ...example, backends: [{ ...entry, usage }] }, 80)).toContain('12.5%  due\n');
});

test('without a subscription it says how to assign one', () => {
  expect(screen({ ...example, backends: [] }, 80)).toMatch(/ctl backend tier <id> subscription/);
});
