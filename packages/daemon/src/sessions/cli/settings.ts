import type { DaemonSettings } from '../../core/settings.js';

/** The settings in force; `values` is replaced when they change. */
export interface SessionSettings {
  readonly values: Pick<
    DaemonSettings,
    'agents' | 'backends' | 'drivers' | 'permissions' | 'tokens' | 'repos' | 'worktrees'
  >;
}
