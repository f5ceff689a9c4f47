import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { gitRules } from '../git/git.js';
import { Digester } from './digest.js';
import { openLogFile } from './shortened.js';
import { linesOf } from './shortened.js';
import { checkRules, type Rules } from './rules.js';

const directories: string[] = [];
afterEach(() => {
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});
const newDirectory = () => {
  const made = mkdtempSync(join(tmpdir(), 'ctl-check-'));
  directories.push(made);
  return made;
};

function digest(lines: readonly string[], { isGood = true, rules = checkRules as Rules } = {}) {
  const digester = new Digester(rules);
  for (const line of lines) digester.add(line);
  return digester.finish(isGood);
}

const passes = (count: number) => Array.from({ length: count }, (_, at) => ` ✓ case ${at} (3 ms)`);

test('a test run that passes is its summary', () => {
  const lines = [
    ...passes(400),
    '',
    ' Test Files  12 passed (12)',
    '      Tests  400 passed (400)',
    '   Duration  3.21s',
  ];
  expect(digest(lines)).toEqual({
    lines: 404,
    left: 401,
    text: `... 401 lines omitted
 Test Files  12 passed (12)
      Tests  400 passed (400)
   Duration  3.21s
`,
  });
});

test('a test run that fails is its failures with what follows, and its summary', () => {
  const failure = [
    ' FAIL  src/wheel.test.ts > turns',
    'AssertionError: expected 1 to be 2',
    '',
    '- Expected',
    '+ Received',
    '',
    ' ❯ src/wheel.test.ts:7:3',
  ];
  const lines = [...passes(200), ...failure, ...passes(200), ' Tests  1 failed | 400 passed'];
  expect(digest(lines, { isGood: false }).text).toBe(
    `... 200 lines omitted\n${failure.join('\n')}\n... 200 lines omitted\n` +
      ' Tests  1 failed | 400 passed\n',
  );
});

test('"0 errors" and passing tests about errors are no failures', () => {
  const worth = (line: string) => checkRules.worthOf(line);
  for (const line of [
    'Found 0 errors.',
    '0 failed',
    'errors: 0',
    'No problems',
    'without errors',
  ]) {
    expect([line, worth(line).isFailure]).toEqual([line, false]);
  }
  for (const line of [' ✓ reports an error', 'ok 7 - fails well', 'test errors ... ok']) {
    expect([line, worth(line)]).toEqual([line, expect.objectContaining({ isNoise: true })]);
  }
  const failures = [
    'src/a.ts(3,1): error TS2304: Cannot find name',
    'error[E0308]: mismatched types',
    'main.c:3:5: fatal error: no such file',
    '--- FAIL: TestWheel (0.00s)',
    'not ok 3 - turns',
    'TypeError: x is not a function',
    'Traceback (most recent call last):',
    'npm ERR! code ELIFECYCLE',
    "thread 'main' panicked at src/main.rs:2",
    'make: *** [Makefile:3: all] Error 2',
    '10 passed, 2 failed',
  ];
  for (const line of failures) expect([line, worth(line).isFailure]).toEqual([line, true]);
  const summaries = [
    'test result: ok. 3 passed; 0 failed',
    'BUILD SUCCESSFUL in 3s',
    'Ran 3 tests',
  ];
  for (const line of summaries) expect([line, worth(line).isSummary]).toEqual([line, true]);
});

test('a failure that nothing gives away is reported by the last lines', () => {
  const lines = Array.from({ length: 300 }, (_, at) => `step ${at}`);
  const { text } = digest(lines, { isGood: false });
  expect(text.split('\n').slice(0, 2)).toEqual(['... 275 lines omitted', 'step 275']);
  expect(text).toMatch(/step 299\n$/);
});

test('a bar of progress is its last state, and a line without end is cut', () => {
  const { text } = digest(['10%\r50%\r100% done', `error ${'x'.repeat(5_000)}`], { isGood: false });
  expect(text).toMatch(/^100% done\nerror x+\.\.\. \(4606 more characters\)\n$/);
});

test('colours do not hide a failure', () => {
  const { text } = digest([...passes(50), '\u001B[31mFAIL\u001B[39m wheel'], { isGood: false });
  expect(text).toContain('\u001B[31mFAIL\u001B[39m wheel\n');
});

test('git: what happened stays, objects and files go', () => {
  const lines = [
    'Enumerating objects: 5, done.',
    'remote: Resolving deltas: 100% (1/1), done.',
    'To example.com:mill.git',
    '   1a2b3c4..5d6e7f8  main -> main',
    ' src/errors.ts | 3 ++-',
    ' create mode 100644 src/failure.ts',
    ' 2 files changed, 3 insertions(+)',
  ];
  expect(digest(lines, { rules: gitRules }).text).toBe(`... 2 lines omitted
To example.com:mill.git
   1a2b3c4..5d6e7f8  main -> main
... 2 lines omitted
 2 files changed, 3 insertions(+)
`);
});

test('whatever comes, kept lines are lines that came, in order, and all are accounted for', () => {
  const line = fc.oneof(
    fc.string({ maxLength: 40 }).filter((text) => !/[\r\n]/.test(text)),
    fc.constantFrom('FAIL x', 'error: y', ' ✓ fine', '3 passed', '', 'plain', ' a.ts | 2 +-'),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 400 }), fc.boolean(), (lines, isGood) => {
      for (const rules of [checkRules, gitRules]) {
        const { text, left, lines: count } = digest(lines, { isGood, rules });
        expect(count).toBe(lines.length);
        let [at, gaps, seen] = [0, 0, 0];
        for (const shown of text.split('\n').slice(0, -1)) {
          const skipped = /^\.\.\. (\d+) lines? omitted$/.exec(shown)?.[1];
          if (skipped === undefined) {
            expect(shown).toBe(lines[at]);
            at += 1;
            seen += 1;
          } else {
            at += Number(skipped);
            gaps += Number(skipped);
          }
        }
        expect([gaps, seen + gaps]).toEqual([left, lines.length]);
        expect(seen).toBeLessThanOrEqual(200);
        const first = lines.findIndex((each) => rules.worthOf(each).isFailure);
        if (first >= 0) expect(text).toContain(lines[first]);
      }
    }),
    { numRuns: 200 },
  );
});

async function allLines(file: string): Promise<string[]> {
  const all: string[] = [];
  for await (const line of linesOf(file)) all.push(line);
  return all;
}

test('lines are whole across the chunks of a file, also in the middle of a letter', async () => {
  const file = join(newDirectory(), 'log');
  const lines = Array.from({ length: 9_000 }, (_, at) => `${at} ${'ä€😀'.repeat(at % 9)}`);
  for (const end of ['', '\n']) {
    writeFileSync(file, lines.join('\n') + end);
    expect(await allLines(file)).toEqual(lines);
  }
  writeFileSync(file, 'x'.repeat(200_000));
  const pieces = await allLines(file);
  expect(pieces.join('')).toBe('x'.repeat(200_000));
  expect(pieces.length).toBeGreaterThan(1);
});

test('logs have telling names and the newest 100 stay', () => {
  const dataDir = newDirectory();
  const command = ['/usr/bin/npm', 'test', '--', 'a b'];
  for (let now = 0; now < 130; now++) {
    openLogFile(dataDir, { feature: 'check', command, now }).close();
  }
  const names = readdirSync(join(dataDir, 'logs', 'check')).toSorted();
  expect(names).toHaveLength(100);
  expect(names.at(-1)).toBe(`1970-01-01T00-00-00.129Z-${process.pid}-npm-test.log`);
  expect(names[0]).toContain('00.030Z');
});
