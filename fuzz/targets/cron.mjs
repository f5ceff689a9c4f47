import { lastOccurrences, occurrencesOf } from '../../packages/queue/dist/core/schedule.js';

/* Schedules: a cron expression and a time zone, a line each. */

const now = Date.UTC(2026, 2, 28, 23, 59, 30);
const hourMs = 3_600_000;
const zones = new Set(Intl.supportedValuesOf('timeZone'));

export const isExpected = (error) =>
  error instanceof TypeError && /^(?:is|must) /.test(error.message);

export function run(input) {
  const [cron = '', zone = ''] = input.toString('utf8').split('\n');
  const timezone = zones.has(zone) ? zone : 'Europe/Berlin';
  const occurrences = occurrencesOf({ cron, timezone });
  let at = now;
  for (let each = 0; each < 5; each++) {
    const next = occurrences.next(at);
    if (next === undefined) break;
    if (!(next > at)) throw new Error(`the next run ${next} is not after ${at}`);
    at = next;
  }
  lastOccurrences(occurrences, { from: now - hourMs, to: now, max: 10 });
}

export const dictionary = [
  '*',
  '*/5',
  '@daily',
  '@hourly',
  'L',
  '1-5',
  'MON',
  'JAN',
  '#2',
  '?',
  '0 0 29 2 *',
  '1W',
  '~',
  '\nEurope/Berlin',
  '\nAmerica/Sao_Paulo',
  '\nAustralia/Lord_Howe',
  '59/59',
  '30 2 * * *',
];
