import { expect, test } from 'vitest';
import { docsSite } from './docs-site.js';

const site = docsSite({
  title: 'A server',
  document: '/openapi.yaml',
  assets: '/docs/files',
});

test('the page refers to files that it has, and to the document', () => {
  const page = site.page.bytes.toString();
  expect(page).toContain('<title>A server</title>');
  const parts = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1]!);
  const files = parts.filter((part) => part.startsWith('/docs/files/'));
  expect(parts.filter((part) => !files.includes(part))).toEqual(['/openapi.yaml']);
  expect(files).toHaveLength(4);
  for (const file of files) {
    expect(site.asset(file.slice('/docs/files/'.length))!.bytes.length).toBeGreaterThan(50);
  }
  expect(site.asset('start.js')!.bytes.toString()).toContain("url: '/openapi.yaml'");
});

test('nothing else can be read through it', () => {
  for (const name of ['index.html', '../package.json', 'package.json', '', 'constructor']) {
    expect(site.asset(name)).toBe(undefined);
  }
});
