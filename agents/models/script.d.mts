export interface Usage {
  in: number;
  out: number;
  read: number;
  write: number;
  reason: number;
}

export interface Action {
  kind: 'say' | 'tool' | 'fail' | 'cut';
  waitMs: number;
  usage: Usage;
  [member: string]: unknown;
}

export function parseScript(prompt: string): {
  steps: { kind: string; rest: string }[];
  usage: Usage;
};
export function hasScript(text: string): boolean;
export function nextAction(
  turn: { prompt: string; answers: number },
  failures: Map<string, number>,
): Action;
