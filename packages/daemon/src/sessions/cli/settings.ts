import type { DaemonSchema } from '@millrace/contract/daemon';
import type { ContextLimits } from '../../core/guard.js';
import type { PolicyRule } from '../../questions/question.js';
import type { WorktreeSettings } from '../worktree-rules.js';
import type { ExtraCli } from './command-lines.js';

/** The settings in force; `values` is replaced when they change. */
export interface SessionSettings {
  readonly values: {
    readonly agents: {
      /** Backends whose own trust check is skipped. */
      readonly trust_workspace: readonly string[];
      /** Whether agents get the daemon's MCP tools. */
      readonly tools: boolean;
      readonly max_depth: number;
      readonly max_children: number;
    };
    readonly backends: { readonly extra: readonly ExtraCli[]; readonly limit_retry: number };
    readonly drivers: { readonly default: 'auto' | DaemonSchema<'Driver'> };
    readonly permissions: {
      readonly policy: readonly PolicyRule[];
      /** A headless agent that waits this long is denied. */
      readonly timeout: number;
    };
    readonly tokens: ContextLimits & BudgetSettings & { readonly compact_resume_prompt: string };
    readonly repos: WorktreeSettings['repos'];
    readonly worktrees: WorktreeSettings['worktrees'] & {
      /** Whether hooks and filters of repositories run. */
      readonly hooks: boolean;
    };
  };
}

export interface BudgetSettings {
  readonly budget_gate: boolean;
  readonly budget_daily_usd: number;
  readonly budget_weekly_usd: number;
  /** Which figure a cap is compared with. */
  readonly budget_basis: 'greater' | 'contract' | 'exact';
  /** Assumed cost of a session while no session's cost is known. */
  readonly assumed_session_usd: number;
}
