// @module-tag campaign-transport
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fencesOf } from './support/markdown.js';

const folder = fileURLToPath(new URL('../sdks/go', import.meta.url));
const hasGo = spawnSync('go', ['version']).status === 0;

describe.skipIf(!hasGo)('Go SDK (needs go)', () => {
  test('its tests pass on real servers', () => {
    const run = spawnSync('go', ['test', '-count=1', './...'], { cwd: folder, encoding: 'utf8' });
    expect({ status: run.status, output: run.stdout + run.stderr }).toMatchObject({
      status: 0,
      output: expect.stringMatching(/^ok\s/),
    });
  });

  test('it is formatted, and vet finds nothing', () => {
    const run = (...args: string[]) => spawnSync(args[0]!, args.slice(1), { cwd: folder });
    expect(String(run('gofmt', '-l', '.').stdout)).toBe('');
    expect(run('go', 'vet', './...').status).toBe(0);
  });

  test('the examples of its page compile', () => {
    const [queue, flow, database] = fencesOf('sdks/go/README.md').map(({ text }) => text);
    const program = `package main

import (
	"context"
	"time"

	millrace "millrace.dev/go"
)

type Mail struct{ To string }
type Sent struct{ ID string }
type Order struct{ ID int }
type Person struct {
	Name string
	Age  int
}

func deliver(context.Context, Mail) (Sent, error) { return Sent{}, nil }
func pay(context.Context, Order) (string, error)  { return "", nil }
func show(millrace.Change) error                  { return nil }

func queue(ctx context.Context, token string) {
${queue}
	_ = err
}

func flow() millrace.Handler {
${flow}
	return ship
}

func database(ctx context.Context, key string) {
${database}
	_, _, _ = ada, older, err
}

func main() {
	queue(nil, "")
	flow()
	database(nil, "")
}
`;
    const home = mkdtempSync(join(folder, 'readme-'));
    onTestFinished(() => rmSync(home, { recursive: true }));
    writeFileSync(join(home, 'main.go'), program);
    const built = spawnSync('go', ['build', '-o', '/dev/null', `./${basename(home)}`], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(built.stderr).toBe('');
  });
});
