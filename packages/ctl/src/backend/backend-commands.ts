import type { DaemonSchema } from '@millrace/contract/daemon';
import { Argument } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';

type AssignableTier = DaemonSchema<'AssignableTier'>;
type ThinkingMode = DaemonSchema<'Settings'>['internal_thinking_mode'];

const tiers = ['free', 'subscription', 'pay_per_use', 'unclassified'];
const modes = ['local_only', 'free_plus_local'];

export function addList(backend: CtlCommand, tools: Tools): void {
  withDaemon(
    backend
      .command('list')
      .alias('ls')
      .summary('List the backends and the thinking mode')
      .description(
        'List every known backend, installed or not: how it is billed, whether it is the ' +
          'default, whether it is enabled, and until when it is skipped because of a rate ' +
          'limit. Then the thinking mode.',
      )
      .example('ctl backend list', 'as a table')
      .example('ctl backend ls --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: DaemonFlags) => {
      const { listBackends } = await import('./backends.js');
      await listBackends(flags, tools);
    });
}

export function addRescan(backend: CtlCommand, tools: Tools): void {
  withDaemon(
    backend
      .command('rescan')
      .summary('Scan for installed backends again')
      .description(
        'Scan the search path of the daemon for every known command line and for a local ' +
          'model. Tiers, the default and what is enabled do not change.',
      )
      .option('--acp', 'Also run --help of programs that may speak ACP themselves')
      .example('ctl backend rescan', 'after installing or removing a command line'),
  ).action(async (flags: DaemonFlags & { acp?: boolean }) => {
    const { rescanBackends } = await import('./backends.js');
    await rescanBackends(flags, tools);
  });
}

export function addTier(backend: CtlCommand, tools: Tools): void {
  withDaemon(
    backend
      .command('tier')
      .summary('Set how a backend is billed')
      .description(
        'Set the tier of a backend. The daemon itself thinks only with free backends and ' +
          'the local model; `ctl usage` shows only subscription backends.',
      )
      .argument('<id>', 'backend id, such as claude')
      .addArgument(new Argument('<tier>', 'how it is billed').choices(tiers))
      .example('ctl backend tier claude subscription', 'a flat subscription')
      .example('ctl backend tier gemini free', 'costs nothing')
      .exitCode(1, 'no such backend, or failure'),
  ).action(async (id: string, tier: AssignableTier, flags: DaemonFlags) => {
    const { setTier } = await import('./backends.js');
    await setTier(id, tier, flags, tools);
  });
}

export function addDefault(backend: CtlCommand, tools: Tools): void {
  withDaemon(
    backend
      .command('default')
      .summary('Set the default backend')
      .description(
        'Set the default backend. It must be installed and enabled; the local model cannot ' +
          'be the default.',
      )
      .argument('<id>', 'backend id, such as claude')
      .example('ctl backend default claude', 'use claude from now on')
      .exitCode(1, 'no such backend, not eligible, or failure'),
  ).action(async (id: string, flags: DaemonFlags) => {
    const { setDefault } = await import('./backends.js');
    await setDefault(id, flags, tools);
  });
}

export function addEnable(backend: CtlCommand, tools: Tools): void {
  addSwitch(backend, tools, {
    name: 'enable',
    summary: 'Enable a backend',
    description: 'Enable a backend.',
    enabled: true,
  });
  addSwitch(backend, tools, {
    name: 'disable',
    summary: 'Disable a backend',
    description:
      'Disable a backend. If it is the default it stays the default, unused, until it is ' +
      'enabled again.',
    enabled: false,
  });
}

interface Switch {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly enabled: boolean;
}

function addSwitch(backend: CtlCommand, tools: Tools, given: Switch): void {
  const { name, summary, description, enabled } = given;
  withDaemon(
    backend
      .command(name)
      .summary(summary)
      .description(description)
      .argument('<id>', 'backend id, such as claude')
      .example(`ctl backend ${name} codex`, 'by its id')
      .exitCode(1, 'no such backend, or failure'),
  ).action(async (id: string, flags: DaemonFlags) => {
    const { setEnabled } = await import('./backends.js');
    await setEnabled(id, enabled, flags, tools);
  });
}

export function addThinkingMode(backend: CtlCommand, tools: Tools): void {
  withDaemon(
    backend
      .command('thinking-mode')
      .summary('Set which backends think for the daemon')
      .description(
        'Set which backends the daemon itself thinks with: the local model alone, or free ' +
          'backends first and the local model last. Paid backends are never used.',
      )
      .addArgument(new Argument('<mode>', 'the mode').choices(modes))
      .example('ctl backend thinking-mode local_only', 'nothing leaves this machine')
      .example('ctl backend thinking-mode free_plus_local', 'the default'),
  ).action(async (mode: ThinkingMode, flags: DaemonFlags) => {
    const { setThinkingMode } = await import('./backends.js');
    await setThinkingMode(mode, flags, tools);
  });
}
