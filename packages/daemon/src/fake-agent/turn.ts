import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { answerTo, stepsOf, type Step } from './script.js';
import type { Transcript } from './transcript.js';

/** The output of a turn: a terminal or JSON. */
export interface TurnUi {
  say(text: string): void;
  /** A message of the model, for JSON output. */
  message(message: object): void;
  /** Resolves with whether it may; rejects when the turn is interrupted. */
  requestPermission(question: string, command: string): Promise<boolean>;
}

export interface TurnParts {
  transcript: Transcript;
  ui: TurnUi;
  cwd: string;
  signal: AbortSignal;
}

export type TurnEnd =
  | { kind: 'answered'; text: string }
  | { kind: 'limited'; text: string; resetsInMs: number }
  | { kind: 'failed'; text: string }
  | { kind: 'crashed'; code: number }
  | { kind: 'interrupted' };

/** Works on one prompt. */
export async function runTurn(parts: TurnParts, prompt: string): Promise<TurnEnd> {
  const { transcript, ui, signal } = parts;
  transcript.prompted(prompt);
  let text: string | undefined;
  try {
    // Even the shortest turn is seen.
    await pause(150, undefined, { signal });
    for (const step of stepsOf(prompt)) {
      const end = await runStep(parts, step);
      if (typeof end === 'object') return end;
      text = end ?? text;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    transcript.interrupted();
    return { kind: 'interrupted' };
  }
  const answer = text ?? answerTo(prompt);
  ui.message(transcript.said(answer));
  ui.say(answer);
  return { kind: 'answered', text: answer };
}

/** Returns how the turn ends, if it does, or its final text. */
async function runStep(
  { transcript, ui, cwd, signal }: TurnParts,
  step: Step,
): Promise<TurnEnd | string | undefined> {
  switch (step.do) {
    case 'sleep':
      await pause(step.ms, undefined, { signal });
      return undefined;
    case 'wait':
      while (!existsSync(resolve(cwd, step.file))) await pause(50, undefined, { signal });
      return undefined;
    case 'ask': {
      const isCommand = step.question.startsWith('$ ');
      const command = isCommand ? step.question.slice(2) : 'make test';
      ui.message(transcript.usedTool('Bash', { command }));
      const isAllowed = await ui.requestPermission(step.question, command);
      transcript.toolAnswered(isAllowed ? 'ok' : 'The user does not want this.');
      return isAllowed ? undefined : 'Then I leave it.';
    }
    case 'limit': {
      const text = `You've hit your session limit - resets in ${step.minutes} minutes`;
      transcript.refused(text);
      return { kind: 'limited', text, resetsInMs: step.minutes * 60_000 };
    }
    case 'fail': {
      const text = `API Error: ${step.status} {"type":"error"}`;
      transcript.refused(text);
      return { kind: 'failed', text };
    }
    case 'crash':
      if (step.unless !== undefined && existsSync(resolve(cwd, step.unless))) return undefined;
      return { kind: 'crashed', code: step.code };
    case 'context':
      transcript.context = step.tokens;
      return undefined;
    case 'write': {
      const file = resolve(cwd, step.file);
      ui.message(transcript.usedTool('Write', { file_path: file }));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, 'Written by the fake agent.\n');
      transcript.toolAnswered('ok');
      return undefined;
    }
    case 'commit':
      commit(cwd, step.message);
      return undefined;
    case 'say':
      return step.text;
  }
}

function commit(cwd: string, message: string): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd, stdio: 'ignore' });
  git('add', '--all');
  const who = ['-c', 'user.name=Fake Agent', '-c', 'user.email=fake@agent.invalid'];
  git(...who, 'commit', '--allow-empty', '--message', message);
}
