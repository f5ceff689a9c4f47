import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import type { DiffFile, SessionDiff } from '../src/pages/agent/review/api.js';
import { appearancesOf, missingBrowser, widths, type OpenOptions } from './browser.js';
import { FakeAgents } from './support/fake-agents.js';
import { eventually, Rig } from './support/rig.js';

const again = inCampaign('browser');

let rig: Rig;
let agents: FakeAgents;
let path: string;

beforeAll(async () => {
  rig = await Rig.start();
}, 240_000);
afterAll(() => rig?.stop());
beforeEach(({ skip }) => {
  skip(rig.browser === undefined, missingBrowser);
  agents = new FakeAgents();
  const session = agents.addSession('retry the upload', 'idle', { branch: 'retry-upload' });
  path = `/agents/${session.id}?tab=changes`;
  agents.diff = diffOf([upload, notes]);
});

const on = (act: Parameters<Rig['on']>[1], options: OpenOptions = {}) =>
  rig.on(path, act, { prepare: agents.install, ...options });

function fileOf(name: string, lines: string[], more: Partial<DiffFile> = {}): DiffFile {
  return {
    path: name,
    old_path: null,
    status: 'modified',
    old_mode: '100644',
    new_mode: '100644',
    binary: false,
    additions: lines.filter((line) => line.startsWith('+')).length,
    deletions: lines.filter((line) => line.startsWith('-')).length,
    hunks: [{ old_start: 3, old_lines: 2, new_start: 3, new_lines: 2, heading: '', lines }],
    ...more,
  };
}

const upload = fileOf('packages/web/src/upload.ts', [
  ' const file = read();',
  '-send(file);',
  '+retry(() => send(file));',
]);
const notes = fileOf('NOTES.md', ['+Uploads are retried once.'], { status: 'added' });

function diffOf(files: DiffFile[], more: Partial<SessionDiff> = {}): SessionDiff {
  const sum = (name: 'additions' | 'deletions') =>
    files.reduce((total, file) => total + file[name], 0);
  return {
    session_id: 'S00000',
    branch: 'retry-upload',
    head: 'a1b2c3d',
    base: 'main',
    base_commit: 'd4c3b2a',
    file_count: files.length,
    additions: sum('additions'),
    deletions: sum('deletions'),
    truncated: false,
    files,
    ...more,
  };
}

describe('changes', () => {
  test('unified and side by side, with a tree of the files', () =>
    on(async (page) => {
      await page.getByText('2 files +2 −1 since main').waitFor();
      const changes = page.getByRole('group', { name: 'Changes' });
      expect(await changes.locator('.diff-deleted').first().innerText()).toMatch(/4\s*-\s*send/);
      await changes.getByText('retry(() => send(file));').waitFor();
      const tree = page.getByRole('navigation', { name: 'Changed files' });
      await tree.getByText('packages/web/src/').waitFor();
      await page.getByRole('button', { name: 'Side by side' }).click();
      const pair = changes.locator('.diff-pair').nth(1);
      await eventually(async () => expect(await pair.locator('.diff-half').count()).toBe(2));
      expect(await pair.locator('.diff-half').first().innerText()).toContain('send(file);');
      expect(await pair.locator('.diff-half').last().innerText()).toContain('retry');
      expect(page.url()).toContain('diff=split');
      await page.getByRole('button', { name: 'Output', exact: true }).click();
      await page.getByRole('log', { name: 'Output' }).waitFor();
      await page.keyboard.press('d');
      await changes.waitFor();
    }));

  again('large difference: renders the visible rows, and the tree scrolls to a file', async () => {
    const files = Array.from({ length: 100 }, (_, file) =>
      fileOf(
        `src/part-${file}.ts`,
        Array.from({ length: 50 }, (_, line) => `+line ${line} of ${file}`),
      ),
    );
    agents.diff = diffOf(files, { truncated: true });
    await on(async (page) => {
      await page.getByText('The difference is larger than 5,000 lines.').waitFor();
      const rows = page.locator('.diff-row');
      await rows.first().waitFor();
      expect(await rows.count()).toBeLessThan(150);
      await page.getByRole('button', { name: 'part-90.ts' }).click();
      await page.getByText('line 3 of 90', { exact: true }).waitFor();
      expect(await rows.count()).toBeLessThan(150);
      await page.reload();
      await page.getByText('line 3 of 90', { exact: true }).waitFor();
    });
  });

  again('no difference', () => {
    agents.diff = diffOf([]);
    return on(async (page) => {
      await page.getByText('No difference from main.').waitFor();
    });
  });
});

describe('actions', () => {
  test('commit, push, merge and rebase send what the form says', () =>
    on(async (page) => {
      const dialog = page.getByRole('dialog');
      await page.getByRole('button', { name: 'Commit…' }).click();
      await page.getByLabel('Message').fill('Retry failed uploads');
      await dialog.getByRole('button', { name: 'Commit', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Push…' }).click();
      await page.getByLabel('Replace the remote branch').check();
      await dialog.getByRole('button', { name: 'Push', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Merge…' }).click();
      await page.getByLabel('Strategy').selectOption('squash');
      await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Rebase…' }).click();
      await dialog.getByRole('button', { name: 'Rebase', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(agents.calls.map(({ path: called, body }) => [called.split(':')[1], body])).toEqual([
        ['commit', { message: 'Retry failed uploads' }],
        ['push', { force: true }],
        ['merge', { strategy: 'squash' }],
        ['rebase', {}],
      ]);
    }));

  again('open-pr: shows the address of the pull request', () => {
    const url = 'https://example.test/mill/pull/7';
    agents.refusals.set('open-pr', { status: 200, body: { url } });
    return on(async (page) => {
      await page.getByRole('button', { name: 'Open pull request…' }).click();
      await page.getByLabel('Draft').check();
      await page.getByRole('dialog').getByRole('button', { name: 'Open pull request' }).click();
      await page.getByRole('link', { name: url }).waitFor();
      expect(agents.calls[0]!.body).toEqual({ title: 'retry the upload', draft: true });
    });
  });

  again('merge: a conflict lists its files and keeps the dialog', () => {
    const detail = 'main moved and conflicts with retry-upload.';
    const body = { code: 'MERGE_CONFLICT', detail, conflicts: ['src/upload.ts'] };
    agents.refusals.set('merge', { status: 409, body });
    return on(
      async (page) => {
        await page.getByRole('button', { name: 'Merge…' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
        await dialog.getByText(detail).waitFor();
        await dialog.getByText('src/upload.ts').waitFor();
      },
      { allowedErrors: /status of 409/ },
    );
  });
});

again.each(appearancesOf(import.meta.url))(
  'changes: accessible at $width in $theme',
  (appearance) =>
    on(async (page, watched) => {
      await page.getByText('retry(() => send(file));').waitFor();
      if (appearance.width === widths.desktop && appearance.theme === 'dark') {
        await page.getByRole('button', { name: 'Side by side' }).click();
      }
      await watched.expectAccessible();
      await watched.screenshot('changes');
      await page.getByRole('button', { name: 'Merge…' }).click();
      await page.getByRole('dialog').waitFor();
      await watched.expectAccessible();
      await watched.screenshot('merge');
    }, appearance),
);
