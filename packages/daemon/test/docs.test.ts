import { openApiYaml } from '@millrace/contract/documents';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await startDaemon({ flags: { token: 'a-token-of-sixteen' } });
});
afterAll(() => daemon.dispose());

test('the documentation page needs no token and nothing from elsewhere', async () => {
  const { api } = daemon;
  const page = await api.send({ path: '/api/docs' });
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:/);
  expect(page.text).not.toMatch(/https?:\/\//);
  const parts = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1]!);
  expect(parts).toHaveLength(5);
  for (const path of parts) {
    const part = await api.send({ path });
    expect([path, part.status]).toEqual([path, 200]);
    expect(part.text.length).toBeGreaterThan(50);
  }
});

test('the description is the contract, byte for byte', async () => {
  const reply = await daemon.api.send({ path: '/api/docs/openapi.yaml' });
  expect(reply.headers['content-type']).toBe('application/yaml');
  expect(reply.text).toBe(openApiYaml('daemon'));
});

test('a HEAD is a GET without its body', async () => {
  for (const path of ['/healthz', '/api/docs', '/api/docs/assets/swagger-ui.css']) {
    const reply = await daemon.api.send({ method: 'HEAD', path });
    expect([path, reply.status, reply.text]).toEqual([path, 200, '']);
  }
});
