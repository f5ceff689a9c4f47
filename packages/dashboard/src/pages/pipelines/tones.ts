import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Tone } from '../../parts/status.js';

export const pipelineTones: Readonly<Record<DaemonSchema<'PipelineStatus'>, Tone>> = {
  pending: 'calm',
  running: 'busy',
  paused: 'warn',
  done: 'good',
  stalled: 'bad',
  canceled: 'off',
};

export const jobTones: Readonly<Record<DaemonSchema<'JobStatus'>, Tone>> = {
  pending: 'calm',
  running: 'busy',
  done: 'good',
  failed: 'bad',
  skipped: 'off',
  needs_attention: 'warn',
};
