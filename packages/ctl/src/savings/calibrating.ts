import { systemClock } from '@millrace/kit/clock';
import { jsonIn, messageOf, Refusal } from '@millrace/kit/errors';
import { humanBytes, humanCount } from '@millrace/kit/units';
import { exchange, isAbort } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';

const defaultBase = 'https://api.anthropic.com';
/** The model family that savings are priced by. */
const model = 'claude-opus-4-5';
const patienceMs = 15_000;

/** Measures bytes per token on local samples. An error changes nothing. */
export async function calibrateHere(
  { most, data }: { most: number; data: string | undefined },
  tools: Tools,
): Promise<void> {
  const { env } = tools.terminal;
  const key = env['ANTHROPIC_API_KEY'];
  if (!key) {
    throw new Refusal(
      'NO_API_KEY',
      'there is no API key to count tokens with. Set ANTHROPIC_API_KEY. Nothing has changed.',
    );
  }
  const { loadDaemonSettings } = await import('../daemon/local-settings.js');
  const { calibrate } = await import('@millrace/daemon/config');
  const { dataDir } = loadDaemonSettings(data === undefined ? {} : { data }, env);
  const base = (env['ANTHROPIC_BASE_URL'] || defaultBase).replace(/\/+$/, '');
  const counter = { url: `${base}/v1/messages/count_tokens`, key };
  const result = await calibrate({
    dataDir,
    now: systemClock.now(),
    most,
    countTokens: (text) => countTokens(counter, text, tools),
  }).catch((error: unknown) => {
    if (isAbort(error)) throw error;
    throw new Refusal(
      'CALIBRATION_FAILED',
      `calibration failed: ${messageOf(error)}. Nothing has changed.`,
      { cause: error },
    );
  });
  if (result === 'no samples') {
    throw new Refusal(
      'NO_SAMPLES',
      'there are no samples to calibrate with. Set `savings_samples: true` in config.yaml, ' +
        'run some checks with `ctl check`, and try again. Nothing has changed.',
    );
  }
  tools.terminal.show(
    result,
    `A token has ${result.bytes_per_token} bytes, measured on ${result.samples} samples ` +
      `(${humanBytes(result.bytes)}, ${humanCount(result.tokens)} tokens).\n`,
  );
}

async function countTokens(
  { url, key }: { url: string; key: string },
  text: string,
  { lifecycle }: Tools,
): Promise<number> {
  const answer = await exchange({
    method: 'POST',
    url,
    headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: text }] }),
    signal: lifecycle.interrupted,
    patienceMs,
  });
  if (answer.status !== 200) throw new Error(`the token counter returned status ${answer.status}`);
  const { input_tokens: tokens } = (jsonIn(answer.text) ?? {}) as { input_tokens?: unknown };
  if (typeof tokens !== 'number') throw new Error('the token counter returned no count');
  return tokens;
}
