import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Rpc, RpcError } from '../../src/fake-agent/rpc.js';
import { answerTo, stepsOf, type Step } from '../../src/fake-agent/script.js';

/** Sessions are files, so that another process can load them. */
function sessionFile(id: string): string {
  return join(process.env['HOME'] ?? '/tmp', '.fake-agent-sessions', `${id}.json`);
}

const models = ['small', 'large'];
const permissionOptions = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];

/** The fake agent over the Agent Client Protocol, a program of its own without its library. */
class FakeAcpAgent {
  readonly #rpc = new Rpc((method, params) => this.#handle(method, params));
  #sessionId = '';
  #cwd = process.cwd();
  #model = models[0]!;
  #turn: AbortController | undefined;
  #toolCount = 0;

  serve(): Promise<void> {
    return this.#rpc.serve();
  }

  async #handle(method: string, params: Record<string, unknown>): Promise<unknown> {
    switch (method) {
      case 'initialize':
        // A banner on stdout, as some agents print one.
        process.stdout.write('fake agent: ready\n');
        return {
          protocolVersion: 1,
          agentInfo: { name: 'fake-agent', version: '1.0' },
          agentCapabilities: { loadSession: true },
          authMethods: [{ id: 'login', name: 'Log in' }],
        };
      case 'session/new':
        return this.#open(randomUUID(), params);
      case 'session/load': {
        const id = String(params['sessionId']);
        if (!existsSync(sessionFile(id))) throw new RpcError(-32_002, 'Resource not found');
        this.#sessionId = id;
        this.#say('a repeated answer');
        return this.#open(id, params);
      }
      case 'session/set_config_option':
        this.#model = String(params['value']);
        return { configOptions: this.#configOptions() };
      case 'session/set_mode':
        return {};
      case 'session/prompt':
        return { stopReason: await this.#prompt(params) };
      case 'session/cancel':
        this.#turn?.abort();
        return {};
      default:
        throw new RpcError(-32_601, 'Method not found');
    }
  }

  #open(id: string, { cwd }: Record<string, unknown>): object {
    if (process.env['FAKE_ACP_LOGIN']) throw new RpcError(-32_000, 'Authentication required');
    this.#sessionId = id;
    this.#cwd = String(cwd);
    mkdirSync(join(sessionFile(id), '..'), { recursive: true });
    writeFileSync(sessionFile(id), '{}');
    const availableModes = [
      { id: 'ask', name: 'Ask' },
      { id: 'code', name: 'Code' },
    ];
    const modes = { currentModeId: 'ask', availableModes };
    return { sessionId: id, modes, configOptions: this.#configOptions() };
  }

  #configOptions(): object[] {
    const options = models.map((value) => ({ value, name: value }));
    const select = { type: 'select', currentValue: this.#model, options };
    return [{ id: 'the-model', name: 'Model', category: 'model', ...select }];
  }

  async #prompt({ prompt }: Record<string, unknown>): Promise<string> {
    const text = (prompt as { text?: string }[]).map((block) => block.text ?? '').join('\n');
    this.#turn = new AbortController();
    const { signal } = this.#turn;
    try {
      this.#update({ sessionUpdate: 'agent_thought_chunk', content: textOf('Let me see.') });
      let isAnswered = false;
      for (const step of stepsOf(text)) {
        isAnswered = (await this.#step(step, signal)) || isAnswered;
        signal.throwIfAborted();
      }
      if (!isAnswered) this.#say(answerTo(text));
      return 'end_turn';
    } catch (error) {
      if (signal.aborted) return 'cancelled';
      throw error;
    } finally {
      this.#turn = undefined;
    }
  }

  /** True when the step is the answer of the turn. */
  async #step(step: Step, signal: AbortSignal): Promise<boolean> {
    switch (step.do) {
      case 'sleep':
        await pause(step.ms, undefined, { signal });
        return false;
      case 'wait':
        while (!existsSync(resolve(this.#cwd, step.file))) await pause(30, undefined, { signal });
        return false;
      case 'ask':
        await this.#requestPermission(step.question, signal);
        return false;
      case 'limit':
        throw new RpcError(-32_603, 'QUOTA_EXHAUSTED');
      case 'fail':
        throw new RpcError(-32_603, `API Error: ${step.status}`);
      case 'crash':
        return process.exit(step.code);
      case 'context':
        this.#update({ sessionUpdate: 'usage_update', used: step.tokens, size: 500_000 });
        return false;
      case 'write':
        await this.#write(step.file);
        return false;
      case 'commit':
        await this.#run(step.message);
        return false;
      case 'say': {
        // In two pieces, cut inside of a word.
        const middle = Math.ceil(step.text.length / 2);
        this.#say(step.text.slice(0, middle));
        this.#say(step.text.slice(middle));
        return true;
      }
    }
  }

  async #requestPermission(question: string, signal: AbortSignal): Promise<void> {
    const toolCallId = this.#tool(question, 'execute', 'pending');
    const rawInput = { command: question.replace(/^\$ /, '') };
    const toolCall = { toolCallId, title: question, kind: 'execute', rawInput };
    const options = permissionOptions;
    const { sessionId } = this.#session();
    const request = { sessionId, toolCall, options };
    const { outcome } = await this.#rpc.request('session/request_permission', request);
    const { outcome: how, optionId } = outcome as { outcome: string; optionId?: string };
    if (how === 'cancelled') return signal.throwIfAborted();
    const status = optionId === 'no' ? 'failed' : 'completed';
    this.#update({ sessionUpdate: 'tool_call_update', toolCallId, status });
    this.#say(`The answer was ${optionId}\n`);
  }

  async #write(file: string): Promise<void> {
    const toolCallId = this.#tool(`Write ${file}`, 'edit', 'in_progress');
    const path = resolve(this.#cwd, file);
    const content = 'made by the fake agent\n';
    try {
      await this.#rpc.request('fs/write_text_file', { ...this.#session(), path, content });
      const diff = [{ type: 'diff', path, oldText: null, newText: content }];
      const status = 'completed';
      this.#update({ sessionUpdate: 'tool_call_update', toolCallId, status, content: diff });
    } catch (error) {
      this.#update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
      this.#say(`refused: ${(error as Error).message}\n`);
    }
  }

  /** `commit "make"` runs the command in a terminal of the client. */
  async #run(command: string): Promise<void> {
    const session = this.#session();
    const made = await this.#rpc.request('terminal/create', { ...session, command });
    const terminal = { ...session, terminalId: made['terminalId'] };
    const { exitCode } = await this.#rpc.request('terminal/wait_for_exit', terminal);
    const { output } = await this.#rpc.request('terminal/output', terminal);
    await this.#rpc.request('terminal/release', terminal);
    this.#say(`exit ${String(exitCode)}: ${String(output)}`);
  }

  #tool(title: string, kind: string, status: string): string {
    const toolCallId = `call-${++this.#toolCount}`;
    this.#update({ sessionUpdate: 'tool_call', toolCallId, title, kind, status });
    return toolCallId;
  }

  #say(text: string): void {
    this.#update({ sessionUpdate: 'agent_message_chunk', content: textOf(text) });
  }

  #update(update: object): void {
    this.#rpc.notify('session/update', { ...this.#session(), update });
  }

  #session(): { sessionId: string } {
    return { sessionId: this.#sessionId };
  }
}

function textOf(text: string): object {
  return { type: 'text', text };
}

await new FakeAcpAgent().serve();
process.exit();
