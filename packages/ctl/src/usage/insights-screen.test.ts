import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { insightsScreen } from './insights.js';

const example = contractExample('Insights');
const screen = (columns: number, insights = example) =>
  insightsScreen(insights, { columns, paint: plain });

test('each kind of pattern has a short table', () => {
  expect(screen(80)).toBe(
    `
ENDED SESSIONS      COUNT  MEDIAN  90%  MAX     TOTAL
all                    40  9m      35m  1h 30m  8h 40m
claude                 40  9m      35m  1h 30m  8h 40m
/home/ada/src/mill     40  9m      35m  1h 30m  8h 40m

Hours 0 to 23  ▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▅▁▁▁▁▁▁▁▁  busiest at 10:00 (2h 43m)

GROUP           SESSIONS  ERRORS  RATE
all                   40       3  7.5%
backend claude        40       3  7.5%

FILE            EDITED WITH    SESSIONS  SHARE
docs/upload.md  src/upload.ts         6  75%

JOB   PARALLEL WITH  SAVING
docs  retry-upload   6m
`.slice(1),
  );
});

test('what has nothing to tell is left out', () => {
  const bare = { ...example, busiest_hours: [], co_edited_files: [], parallel_candidates: [] };
  expect(screen(140, bare)).not.toMatch(/Hours|EDITED|COULD/);
  expect(screen(80, { ...example, sessions: 0 })).toMatch(/^No sessions yet/);
});
