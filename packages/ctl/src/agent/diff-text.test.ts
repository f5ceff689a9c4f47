import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { diffText, statText, summaryText } from './workbench.js';

const diff = contractExample('SessionDiff');
const [file] = diff.files;

test('diff: a unified diff that other programs read', () => {
  expect(diffText(diff, plain)).toBe(`diff --git a/src/upload.ts b/src/upload.ts
--- a/src/upload.ts
+++ b/src/upload.ts
@@ -3,2 +3,2 @@ export function upload() {
 const file = read();
-send(file);
+retry(() => send(file));
`);
});

test('diff: added, deleted, renamed and binary files', () => {
  const none = { additions: 0, deletions: 0, hunks: [] };
  const added = { ...file!, status: 'added' as const, old_mode: null };
  const deleted = { ...file!, status: 'deleted' as const, new_mode: null };
  const renamed = { ...file!, ...none, status: 'renamed' as const, old_path: 'old\u001b.ts' };
  const binary = { ...file!, ...none, binary: true };
  const text = diffText({ ...diff, files: [added, deleted, renamed, binary] }, plain);
  expect(text).toContain('new file mode 100644\n--- /dev/null\n+++ b/src/upload.ts');
  expect(text).toContain('deleted file mode 100644\n--- a/src/upload.ts\n+++ /dev/null');
  expect(text).toContain('rename to src/upload.ts');
  expect(text).not.toContain('\u001b');
  expect(text).toContain('Binary files a/src/upload.ts and b/src/upload.ts differ');
  expect(statText({ ...diff, files: [binary] }, { columns: 80, paint: plain })).toBe(
    'FILE           STATUS            ADDED  DELETED\n' +
      'src/upload.ts  modified, binary      0        0\n',
  );
});

test('diff: the summary counts, and says when something is left out', () => {
  expect(summaryText(diff)).toBe(
    '1 file changed, 1 line added, 1 line deleted, compared with main\n',
  );
  expect(summaryText({ ...diff, base: null, truncated: true })).toContain(
    'compared with 1a2b3c4d5e6f; the diff is too long and was cut',
  );
});
