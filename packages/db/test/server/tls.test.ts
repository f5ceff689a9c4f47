import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { credentials } from '@grpc/grpc-js';
import { UsageError } from '@millrace/kit/errors';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GrpcClient } from './support/grpc.js';
import { startServer, type TestServer } from './support/server.js';

const file = (name: string) => fileURLToPath(new URL(`./certificates/${name}`, import.meta.url));
const read = (name: string) => readFileSync(file(name));

let plain: TestServer;
let mutual: TestServer;

beforeAll(async () => {
  const pair = { 'tls-cert': file('server.pem'), 'tls-key': file('server.key') };
  plain = await startServer(pair);
  mutual = await startServer({ ...pair, 'client-ca': file('ca.pem') });
});
afterAll(async () => {
  await plain?.dispose();
  await mutual?.dispose();
});

/** TLS knows servers by name. */
const byName = ({ grpc }: TestServer) => grpc.replace('127.0.0.1', 'localhost');

function get(url: string, options: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { ca: read('ca.pem'), ...options }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    call.on('error', reject);
    call.end();
  });
}

test('tls: both ports use the certificate', async () => {
  expect(plain.listeners.map(({ url }) => url.split(':')[0])).toEqual(['grpcs', 'https', 'unix']);
  const client = new GrpcClient(byName(plain), credentials.createSsl(read('ca.pem')));
  expect(await client.call('BeginTx')).toHaveProperty('tx_id');
  client.close();
  expect(await get(`${plain.http}/healthz`, {})).toBe(200);
  await expect(fetch(plain.http.replace('https', 'http'))).rejects.toThrow();
  await expect(get(`${plain.http}/healthz`, { ca: [] })).rejects.toThrow();
});

test('tls: the Unix socket needs no certificate', async () => {
  const client = new GrpcClient(mutual.socket);
  expect(await client.health()).toEqual({ status: 'SERVING' });
  client.close();
});

test('tls: client_ca requires a client certificate', async () => {
  const own = { key: read('caller.key'), cert: read('caller.pem') };
  expect(await get(`${mutual.http}/healthz`, own)).toBe(200);
  await expect(get(`${mutual.http}/healthz`, {})).rejects.toThrow();
  const known = new GrpcClient(
    byName(mutual),
    credentials.createSsl(read('ca.pem'), own.key, own.cert),
  );
  expect(await known.health()).toEqual({ status: 'SERVING' });
  known.close();
  const stranger = new GrpcClient(byName(mutual), credentials.createSsl(read('ca.pem')));
  await expect(stranger.health()).rejects.toMatchObject({ code: 14 });
  stranger.close();
});

test('tls: missing or mismatched files name the setting', async () => {
  const cert = file('server.pem');
  const refusals: [flags: Record<string, string>, text: RegExp][] = [
    [{ 'tls-cert': cert }, /tls_cert requires tls_key/],
    [{ 'tls-key': file('server.key') }, /tls_key requires tls_cert/],
    [{ 'client-ca': file('ca.pem') }, /client_ca requires tls_cert/],
    [{ 'tls-cert': file('none.pem'), 'tls-key': file('server.key') }, /tls_cert: ENOENT/],
    [
      { 'tls-cert': cert, 'tls-key': file('caller.key') },
      /cannot use tls_cert .*key values mismatch/,
    ],
  ];
  for (const [flags, text] of refusals) {
    const started = startServer(flags);
    await expect(started).rejects.toThrow(UsageError);
    await expect(started).rejects.toThrow(text);
  }
});
