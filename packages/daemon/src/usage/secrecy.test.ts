import { createLog } from '@millrace/kit/log';
import { afterEach, expect, test } from 'vitest';
import { subscribed, UsageBench } from './usage.test-support.js';
import { Usage } from './usage.js';

/** What must stay with the provider and with the login, wherever in an answer it stands. */
const planted = [
  'ada.lovelace@example.com',
  'Ada Lovelace',
  'org-7f3a91',
  'acct_5521',
  'req_011CSHoEeqs5C35K2UUqR7Fy',
  '/Users/ada/.secrets/auth.json',
  'sk-ant-oat01-TOPSECRET',
  'ya29.TOPSECRET',
  'eyJ.TOPSECRET.sig',
  'agy-TOPSECRET',
  'refresh-TOPSECRET',
  'key_TOPSECRET',
  'codex-TOPSECRET',
];
const noise = {
  email: planted[0],
  name: planted[1],
  organization: { id: planted[2], account: planted[3] },
  request_id: planted[4],
  path: planted[5],
  message: planted.join(' '),
};

const benches: UsageBench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.stop();
});

const bodies = {
  claude: { ...noise, five_hour: { ...noise, utilization: 5, resets_at: planted[0] } },
  cursor: { ...noise, billingCycleEnd: planted[4], planUsage: { ...noise, totalPercentUsed: 5 } },
  gemini: {
    ...noise,
    buckets: [
      { ...noise, modelId: planted[0], remainingFraction: 0.5, resetTime: planted[5] },
      { ...noise, modelId: 'gemini-3-pro', remainingFraction: 0.5 },
    ],
  },
};

/** Reads usage of everything and answers all that could be seen of it: document and log. */
async function everythingSeen(answer: (body: object) => object, codexScript: string) {
  const bench = await UsageBench.start();
  benches.push(bench);
  bench.write('.claude/.credentials.json', {
    claudeAiOauth: { accessToken: planted[6], refreshToken: planted[10], account: planted[0] },
  });
  bench.write('.config/cursor/auth.json', { accessToken: planted[8], apiKey: planted[11] });
  bench.write('.gemini/oauth_creds.json', { access_token: planted[7], id_token: planted[0] });
  bench.write('.gemini/antigravity-cli/antigravity-oauth-token', planted[9]);
  bench.environment['CURSOR_API_KEY'] = planted[11]!;
  bench.environment['OPENAI_API_KEY'] = planted[12]!;
  const binaryPath = bench.codex(`const noise = ${JSON.stringify(noise)};\n${codexScript}`);
  bench.rows = [
    ...['agy', 'claude', 'cursor-agent', 'gemini', 'opencode'].map((id) => subscribed(id)),
    subscribed('codex', { binary_path: binaryPath }),
  ];
  bench.provider.answer = ({ url }) => {
    if (url.includes('oauth')) return answer(bodies.claude);
    return answer(url.includes('Dashboard') ? bodies.cursor : bodies.gemini);
  };
  let logged = '';
  const log = createLog({
    level: 'trace',
    component: 'daemon',
    destination: { write: (line) => (logged += line) },
  });
  const { clock, environment, home, settings } = bench;
  const rows = async () => bench.rows;
  const usage = new Usage({ clock, environment, home, log, providers: settings, rows });
  const document = await usage.read();
  const again = await usage.read({ refresh: true });
  await usage.close();
  expect(bench.provider.calls.length).toBeGreaterThan(3);
  const shown = JSON.stringify([document, again]);
  const statuses = Object.fromEntries(document.backends.map(({ id, status }) => [id, status]));
  return { seen: `${shown}\n${logged}`, home, logged, statuses };
}

function expectSecrets(seen: string, home: string): void {
  for (const secret of [...planted, 'TOPSECRET', home, '127.0.0.1']) {
    expect(seen, secret).not.toContain(secret);
  }
}

test('answers that are understood keep their secrets', async () => {
  const { seen, home, statuses } = await everythingSeen(
    (body) => ({ body, headers: { 'request-id': planted[4]! } }),
    'serve((id) => say({ id, result: { ...noise, rateLimits: { ...noise, primary: { ...noise, usedPercent: 5 } } } }));',
  );
  expect(statuses).toEqual({
    agy: 'ok',
    claude: 'ok',
    codex: 'ok',
    'cursor-agent': 'ok',
    gemini: 'ok',
    opencode: 'unsupported',
  });
  expectSecrets(seen, home);
});

test('refusals keep their secrets, in the log as well', async () => {
  for (const status of [302, 400, 401, 403, 429, 500]) {
    const { seen, home, logged, statuses } = await everythingSeen(
      (body) => ({ status, body, headers: { location: planted[5]!, 'x-request-id': planted[4]! } }),
      'serve((id) => say({ id, error: { code: -32603, message: noise.message, data: noise } }));',
    );
    expect(Object.values(statuses)).not.toContain('ok');
    expect(logged).toContain('usage unknown');
    expectSecrets(seen, home);
  }
});

test('nonsense keeps its secrets', async () => {
  const { seen, home, statuses } = await everythingSeen(
    () => ({ body: `${planted.join(' ')} {` }),
    'process.stdout.write(noise.message + "\\n"); console.error(noise.message); process.exit(1);',
  );
  expect(new Set(Object.values(statuses))).toEqual(new Set(['error', 'unsupported']));
  expectSecrets(seen, home);
});
