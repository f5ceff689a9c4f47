/** How long `ctl tui` takes from a key to the redrawn screen, with agents that run. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCommand, startProgram, stop } from '../shared/processes.mjs';
import { callDaemon } from './call.mjs';
import { Daemon } from './server.mjs';

export const agentCount = 30;
const keyCount = 40;
const maxQuietMs = 3_000;
const maxWaitMs = 30_000;
const down = '\u001B[B';
const up = '\u001B[A';

/** The waits in milliseconds; undefined without the program that makes a terminal. */
export async function redrawTimes(root, home) {
  if (!hasCommand('script')) return undefined;
  const bin = join(home, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'claude'), '#!/bin/sh\nexec sleep 86400\n');
  chmodSync(join(bin, 'claude'), 0o755);
  const daemon = await Daemon.start(root, home, { PATH: `${bin}:${process.env.PATH}` });
  try {
    for (let n = 1; n <= agentCount; n++) {
      const body = { prompt: `wait ${n}`, backend: 'claude', driver: 'headless', cwd: home };
      await callDaemon(daemon.url, 'POST', '/api/v1/spawn', body);
    }
    return await pressKeys(root, daemon);
  } finally {
    const { sessions } = await callDaemon(daemon.url, 'GET', '/api/v1/sessions');
    for (const { id } of sessions) {
      await callDaemon(daemon.url, 'POST', `/api/v1/sessions/${id}:stop`);
    }
    await daemon.stop();
  }
}

async function pressKeys(root, daemon) {
  const command = `stty rows 40 cols 140; exec '${process.execPath}' '${join(root, 'bin', 'ctl')}' tui --url ${daemon.url}`;
  const env = { ...daemon.environment, TERM: 'xterm-256color' };
  const args = ['-qfec', command, '/dev/null'];
  const child = startProgram('script', args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let drawnAt = 0;
  let text = '';
  child.stdout.on('data', (bytes) => {
    drawnAt = performance.now();
    text = (text + bytes).slice(-100_000);
  });
  try {
    for (let n = 0; !text.includes('wait 1'); n++) {
      if (n > 300) throw new Error(`ctl tui shows no agents: ${JSON.stringify(text.slice(-300))}`);
      await sleep(100);
    }
    const times = [];
    for (let n = 0; n < keyCount; n++) {
      // Away from the tick, by which ages are redrawn.
      await quiet(() => drawnAt);
      const pressedAt = performance.now();
      child.stdin.write(Math.floor(n / 10) % 2 === 0 ? down : up);
      while (drawnAt < pressedAt) {
        if (performance.now() - pressedAt > maxWaitMs) throw new Error('ctl tui ignores a key');
        await sleep(1);
      }
      times.push(drawnAt - pressedAt);
    }
    return times;
  } finally {
    await stop(child);
  }
}

/** Waits until nothing is drawn, but not for long: a busy machine draws late, and then often. */
async function quiet(lastDrawnAt) {
  const until = performance.now() + maxQuietMs;
  while (performance.now() - lastDrawnAt() < 150 && performance.now() < until) await sleep(10);
}
