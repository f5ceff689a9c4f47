import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, parseAllDocuments } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { daemonConfig } from '@millrace/daemon/config';
import type { CommandShape } from '../packages/ctl/src/base/shape.js';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { queueConfig } from '@millrace/queue/config';
import { faultOfCtl } from './support/command-tree.js';
import { fencesOf, read, root } from './support/markdown.js';

/* The manifests and their page against each other and against the program; no cluster is needed. */

const page = 'docs/how-to/kubernetes.md';
const manifests = parseAllDocuments(
  readFileSync(join(root, 'packaging', 'kubernetes.yaml'), 'utf8'),
);
const documents = manifests.map((one) => one.toJS() as any);
const services = documents.filter(({ kind }) => kind === 'Service');
const workloads = documents.filter(({ kind }) => kind !== 'Service');
const commands = fencesOf(page)
  .map(({ text }) => text.replaceAll(/\\\n\s*/g, ''))
  .join('');

let tree: CommandShape;
beforeAll(async () => {
  tree = JSON.parse((await ctl(['help', '--json'])).out);
});

test('the manifests are YAML without a mistake', () => {
  expect(manifests.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  expect(workloads.map(({ metadata }) => metadata.name)).toEqual([
    'millrace-queue',
    'millrace-db',
    'millrace-daemon',
  ]);
});

describe.each(workloads.map((one) => [one.metadata.name, one] as const))('%s', (name, { spec }) => {
  const pod = spec.template.spec;
  const containers = [...pod.containers, ...(pod.initContainers ?? [])];
  const open = pod.containers.flatMap((one: any) =>
    one.ports.map((port: any) => port.containerPort),
  );

  test('its Service selects its Pods and leads to ports that they open', () => {
    expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
    const own = services.filter(
      (one) => one.spec.selector.app === spec.template.metadata.labels.app,
    );
    expect(own.map(({ metadata }) => metadata.name)).toEqual([name]);
    expect(spec.serviceName ?? name).toBe(name);
    const { ports } = own[0].spec;
    for (const { port } of ports) expect(open).toContain(port);
    // A port of several needs a name.
    if (ports.length > 1) expect(ports.every((port: any) => port.name)).toBe(true);
  });

  test('probes ask a port that is open', () => {
    for (const { readinessProbe, livenessProbe } of pod.containers) {
      for (const { httpGet } of [readinessProbe, livenessProbe])
        expect(open).toContain(httpGet.port);
    }
  });

  test('mounts volumes that are declared, and runs commands of millrace', () => {
    const claims = (spec.volumeClaimTemplates ?? []).map((one: any) => one.metadata.name);
    const declared = [...claims, ...(pod.volumes ?? []).map((one: any) => one.name)];
    for (const { args, volumeMounts } of containers) {
      if (args) expect(faultOfCtl(`millrace ${args.join(' ')}`, tree)).toBeUndefined();
      for (const mount of volumeMounts) expect(declared).toContain(mount.name);
    }
  });

  test('reads keys of the Secret that the page creates', () => {
    const made = new Set(
      [...commands.matchAll(/--from-(?:file|literal)=([^\s=]+)/g)].map(([, key = '']) =>
        key.replace(/^.*\//, ''),
      ),
    );
    const items = (pod.volumes ?? []).flatMap((one: any) => one.secret?.items ?? []);
    const fromEnv = containers.flatMap((one: any) =>
      (one.env ?? []).flatMap((each: any) => each.valueFrom?.secretKeyRef ?? []),
    );
    const wanted = [...items, ...fromEnv].map(({ key }) => key);
    expect(wanted.length).toBeGreaterThan(0);
    expect(wanted.filter((key) => !made.has(key))).toEqual([]);
  });

  test('its variables are settings of its server', () => {
    const definition = { 'millrace-queue': queueConfig, 'millrace-daemon': daemonConfig }[
      name as string
    ];
    const known = new Set(definition?.settings.map(({ variable }) => variable));
    const names = containers.flatMap((one: any) => (one.env ?? []).map((each: any) => each.name));
    expect(names.filter((each) => !known.has(each))).toEqual([]);
  });

  test('the addresses of other servers are Services with that port', () => {
    const values = containers.flatMap((one: any) => (one.env ?? []).map((each: any) => each.value));
    for (const value of values.filter((each) => /^https?:/.test(each ?? ''))) {
      const { hostname, port } = new URL(value);
      const service = services.find(({ metadata }) => metadata.name === hostname);
      expect(
        service?.spec.ports.map((each: any) => String(each.port)),
        value,
      ).toContain(port);
    }
  });
});

test('the page runs commands that exist, in Pods and Services that exist', () => {
  const inPods = [...commands.matchAll(/kubectl exec (\S+) -- (millrace .*)/g)];
  expect(inPods.length).toBeGreaterThan(0);
  for (const [, pod = '', line = ''] of inPods) {
    expect(workloads.map(({ metadata }) => `${metadata.name}-0`)).toContain(pod);
    expect(faultOfCtl(line, tree)).toBeUndefined();
  }
  const forwarded = [...commands.matchAll(/port-forward service\/(\S+) (\d+)/g)];
  for (const [, name, port] of forwarded) {
    const service = services.find(({ metadata }) => metadata.name === name);
    expect(service.spec.ports.map((each: any) => String(each.port))).toContain(port);
  }
  expect(read(page)).toContain('packaging/kubernetes.yaml');
});

describe('the chart', () => {
  const chart = (file: string) => read(`packaging/helm/${file}`);
  const values = parse(chart('values.yaml'));

  /** As helm renders it: the templates have values and nothing else. */
  function rendered(file: string): string {
    return chart(`templates/${file}`).replaceAll(
      /\{\{ \.Values\.([\w.]+) \}\}/g,
      (_, path: string) => {
        const value = path.split('.').reduce((inner, name) => inner?.[name], values);
        if (value === undefined) throw new Error(`values.yaml has no ${path}`);
        return String(value);
      },
    );
  }

  test('its defaults are the manifests', () => {
    const files = ['queue.yaml', 'db.yaml', 'daemon.yaml'];
    expect(readdirSync(join(root, 'packaging', 'helm', 'templates')).toSorted()).toEqual(
      files.toSorted(),
    );
    const all = files.flatMap((file) => parseAllDocuments(rendered(file)));
    expect(all.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    expect(all.map((one) => one.toJS())).toEqual(documents);
  });

  test('its schema takes the defaults and refuses a mistake', () => {
    const check = new Ajv2020().compile(JSON.parse(chart('values.schema.json')));
    expect(check(values), JSON.stringify(check.errors)).toBe(true);
    expect(check({ ...values, queue: { replicas: 0 } })).toBe(false);
    expect(check({ ...values, imagee: 'x' })).toBe(false);
  });

  test('is what helm calls good', (context) => {
    const run = spawnSync('helm', ['lint', 'packaging/helm'], { cwd: root, encoding: 'utf8' });
    if (run.error) context.skip('helm is not installed');
    expect(run.status, run.stdout).toBe(0);
  });

  test('has the version of the packages', () => {
    const { version } = JSON.parse(read('packages/millrace/package.json'));
    expect(parse(chart('Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });
});
