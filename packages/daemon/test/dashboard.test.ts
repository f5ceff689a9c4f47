import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildDashboard } from '../../dashboard/scripts/build.mjs';
import { DashboardSite } from '../src/dashboard/site.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';

let daemon: TestDaemon;
beforeAll(async () => {
  await buildDashboard();
  daemon = await startDaemon({ flags: { token: 'a-token-of-sixteen' } });
});
afterAll(() => daemon?.dispose());

test('the dashboard needs no token, and nothing from elsewhere can get into it', async () => {
  const page = await daemon.api.send({ path: '/' });
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.headers['cache-control']).toBe('no-cache');
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
  expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|https?:\/\//);
});

test('every file that the page names is there, and is kept for good', async () => {
  const page = await daemon.api.send({ path: '/' });
  const parts = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1]!);
  expect(parts.length).toBeGreaterThanOrEqual(3);
  for (const path of parts) {
    expect(path).toMatch(/^\/assets\/[\w.-]+$/);
    const file = await daemon.api.send({ path });
    expect([path, file.status]).toEqual([path, 200]);
    expect(file.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(file.headers['x-content-type-options']).toBe('nosniff');
  }
});

test('a browser that unpacks is sent packed files, others are not', async () => {
  const get = async (accepted: string | undefined) => {
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
    const response = await fetch(`${daemon.url}/`, { headers });
    await response.arrayBuffer();
    return response.headers.get('content-encoding');
  };
  expect(await get('gzip, deflate, br')).toBe('gzip');
  expect(await get('br;q=1.0, gzip;q=0.8')).toBe('gzip');
  expect(await get('gzip;q=0')).toBe(null);
  expect(await get('identity')).toBe(null);
});

test('a new build is seen without a restart', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mr-site-'));
  const site = new DashboardSite(folder);
  expect(site.page()).toBe(undefined);
  expect(site.asset('a.js')).toBe(undefined);
  mkdirSync(join(folder, 'assets', 'folder'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>One</title>');
  writeFileSync(join(folder, 'assets', 'a.js'), 'export {};');
  expect(site.page()!.bytes.toString()).toContain('One');
  const asset = site.asset('a.js')!;
  expect(asset.contentType).toContain('text/javascript');
  expect(gunzipSync(asset.gzipped).toString()).toBe('export {};');
  expect(site.asset('folder')).toBe(undefined);
  rmSync(folder, { recursive: true });
});
