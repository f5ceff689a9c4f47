/** Values that only a server knows. */
export const liveKinds = [
  'agents',
  'backends',
  'collections',
  'dead-tasks',
  'jobs',
  'notes',
  'pipelines',
  'queues',
  'schedules',
  'tasks',
] as const;
export type LiveKind = (typeof liveKinds)[number];

/** The first word of the command line with which completion scripts ask for such values. */
export const liveCommand = '__complete';

const byName: Readonly<Record<string, LiveKind>> = {
  agent: 'agents',
  backend: 'backends',
  collection: 'collections',
  notes: 'notes',
  pipeline: 'pipelines',
  queue: 'queues',
  queues: 'queues',
};

/** For names that mean different things in different commands, and for options. */
const byCommand: readonly [path: RegExp, names: readonly string[], kind: LiveKind][] = [
  [/^ctl backend /, ['id'], 'backends'],
  [/^ctl queue (get|cancel|run-now)$/, ['id', 'ids'], 'tasks'],
  [/^ctl queue (redrive|purge)$/, ['ids'], 'dead-tasks'],
  [/^ctl queue job /, ['id'], 'jobs'],
  [/^ctl queue schedule /, ['name'], 'schedules'],
  [/^ctl (queue|agent) /, ['--queue'], 'queues'],
  [/^ctl agent /, ['--backend'], 'backends'],
];

/** Commands whose argument is a new name. */
const creating = new Set(['ctl queue create']);

/** What to ask a server for, by the command and the name of its argument or option value. */
export function liveKindOf(path: string, name: string, flag?: string): LiveKind | undefined {
  if (creating.has(path)) return undefined;
  const special = byCommand.find(([at, names]) => at.test(path) && names.includes(flag ?? name));
  return special?.[2] ?? (Object.hasOwn(byName, name) ? byName[name] : undefined);
}
