import { nameOf } from './reader.js';
import { noTokens, type Detection } from './detection.js';

/** One answer of a model, as gemini, qwen and opencode record it. */
export interface Answer {
  backend: string;
  agent: string;
  /** Names the answer within the agent. */
  ids: readonly string[];
  at: number;
  cwd: string;
  model: string;
  /** Cached tokens excluded. */
  input: number;
  /** Reasoning tokens included. */
  output: number;
  cacheRead: number;
  cacheWrite?: number;
}

export function sightingOf(answer: Answer): Detection {
  const { backend, agent, ids, at, cwd, model, input, output, cacheRead, cacheWrite = 0 } = answer;
  return {
    key: nameOf(backend, agent, ...ids),
    at,
    place: { backend, agent, cwd, model: model || 'unknown', rank: 0 },
    // A cached count above the input would make it negative.
    tokens: { ...noTokens, input: Math.max(0, input), output, cacheRead, cacheWrite },
  };
}
