import { expect, test } from 'vitest';
import { problemsOf } from '../scripts/request-page.mjs';

/* The comparison of `npm run request-files`; `npm run check` makes it with real measurements. */

const page = `# Requests

<!-- request files: begin -->

| Request | Files | By package  |
| ------- | ----: | ----------- |
| Submit  |     2 | kit 1, db 1 |

<!-- request files: end -->

## Submit

1. \`kit/http/app.ts\`: first
`;
const files = ['kit/http/app', 'engine/api/database'];
const recorded = { Submit: { kit: 1, db: 1 } };
const advice = 'Record new counts with: npm run request-files -- --update';

test('request paths: equal or smaller counts pass', async () => {
  expect(await problemsOf({ Submit: files }, recorded, page)).toEqual([]);
  expect(await problemsOf({ Submit: ['kit/http/app'] }, recorded, page)).toEqual([]);
});

test('request paths: a count that grew fails', async () => {
  const grown = { Submit: [...files, 'engine/api/more'] };
  expect(await problemsOf(grown, recorded, page)).toEqual([
    '"Submit" executes 3 files; request-files.json has 2. Use fewer files.',
    advice,
  ]);
});

test('request paths: a request without a recorded count fails', async () => {
  const [problem] = await problemsOf({ Submit: files, Claim: ['kit/clock'] }, recorded, page);
  expect(problem).toContain('"Claim" executes 1 files; request-files.json has 0');
});

test('request paths: a page that names a file which does not execute fails', async () => {
  const measured = { Submit: ['kit/http/body', 'engine/api/database'] };
  expect(await problemsOf(measured, recorded, page)).toEqual([
    'request-paths.md: "Submit" does not execute kit/http/app.ts',
    advice,
  ]);
});

test('request paths: a table with other figures fails', async () => {
  expect(await problemsOf({ Submit: files }, recorded, page.replace('|     2', '|     1'))).toEqual(
    ['The table of request-paths.md differs from request-files.json.', advice],
  );
});
