import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type ClientContext,
  type InitializeResponse,
  type LoadSessionResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
  type SetSessionConfigOptionResponse,
} from '@agentclientprotocol/sdk';
import { ToolCalls, type HostEvent } from './host-events.js';
import {
  offersIn,
  withConfig,
  firstState,
  type HostCommand,
  type HostLaunch,
  type HostReply,
  type HostState,
  type PendingPermission,
} from './state.js';
import { ReportedFailure } from './reported-failure.js';

export interface HostParts {
  launch: HostLaunch;
  clock: Clock;
  emit: (event: HostEvent) => void;
  /** Called after every change of the state. */
  onState: (state: HostState) => void;
}

/** Text of the agent that has no end of line yet. */
interface Pending {
  type: 'message' | 'thought';
  id: string | null;
  text: string;
  /** The start of the line was written in a pause. */
  isRest: boolean;
}

interface Waiting {
  permission: PendingPermission;
  resolve: (response: RequestPermissionResponse) => void;
}

/** Text without a line break is written after this pause, so that a long turn shows it. */
const pauseMs = 2_000;
const cancelled: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } };

/** One agent and its session, as the Agent Client Protocol shows it. */
export class AcpHost {
  #state: HostState = firstState;
  readonly #tools = new ToolCalls();
  readonly #reported = new ReportedFailure();
  readonly #prompts: string[] = [];
  readonly #waiting = new Map<string, Waiting>();
  #text: Pending | undefined;
  #pause: Timer | undefined;
  #agent: ClientContext | undefined;
  #isLoading = false;
  #isRunning = false;
  #permissionCount = 0;

  constructor(private readonly parts: HostParts) {
    parts.onState(this.#state);
  }

  /** Opens or continues the session, and gives the agent its first prompt. */
  async begin(agent: ClientContext): Promise<void> {
    this.#agent = agent;
    const answer = await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: 'millrace', version: '1' },
    });
    const { name, version } = answer.agentInfo ?? {};
    this.#set({ agent: name === undefined ? null : `${name} ${version ?? ''}`.trim() });
    const { launch } = this.parts;
    const isContinued = launch.resume !== null && (await this.#resume(answer, launch.resume));
    if (!isContinued) await this.#newSession(answer);
    await this.#choose();
    const prompt = isContinued ? launch.resumePrompt : launch.prompt;
    if (prompt === null) this.#set({ status: 'idle' });
    else this.#prompt(prompt);
  }

  handle(command: Exclude<HostCommand, { do: 'watch' }>): HostReply {
    switch (command.do) {
      case 'prompt':
        if (this.#state.status === 'starting') {
          return { reply: 'refused', detail: 'the session is not open yet' };
        }
        this.#prompt(command.text);
        return { reply: 'taken' };
      case 'cancel':
        this.#cancel();
        return { reply: 'taken' };
      case 'answer':
        return this.#answer(command.permission, command.option);
    }
  }

  update(update: SessionUpdate): void {
    if (!this.#isLoading) this.#reported.take(update);
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
      case 'agent_thought_chunk': {
        if (this.#isLoading || update.content.type !== 'text') return;
        const type = update.sessionUpdate === 'agent_message_chunk' ? 'message' : 'thought';
        this.#addText(type, update.content.text, update.messageId ?? null);
        return;
      }
      case 'tool_call':
      case 'tool_call_update': {
        const events = this.#tools.take(update);
        if (this.#isLoading) return;
        for (const event of events) this.#emit(event);
        return this.#set({ doing: this.#tools.doing });
      }
      case 'plan':
        if (this.#isLoading) return;
        return this.#emit({ type: 'plan', entries: update.entries.map(planEntry) });
      case 'usage_update':
        this.#set({ contextTokens: update.used, contextWindow: update.size });
        return this.#emit({ type: 'usage', used: update.used, size: update.size });
      case 'current_mode_update':
        return this.#set({ mode: update.currentModeId });
      case 'config_option_update':
        return this.#set(withConfig(this.#state, update.configOptions));
      default:
    }
  }

  /**
   * Waits until the request is answered, the turn is cancelled or the agent cancels the request.
   */
  requestPermission(
    { toolCall, options }: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const permission: PendingPermission = {
      id: `p${++this.#permissionCount}`,
      ...this.#tools.permissionDetails(toolCall),
      options: options.map(({ optionId, name, kind }) => ({ id: optionId, label: name, kind })),
    };
    const { id, title, body } = permission;
    return new Promise((resolve) => {
      this.#waiting.set(id, { permission, resolve });
      signal.addEventListener('abort', () => this.#settle(id, cancelled), { once: true });
      this.#emit({ type: 'permission', id, title, body });
      this.#showWaiting();
    });
  }

  /** Records the error that stops the agent. */
  fail(error: unknown): void {
    this.#emit({ type: 'error', text: errorText(error) });
  }

  /** Writes text that has no line break yet. */
  flush(): void {
    this.#pause?.cancel();
    const rest = this.#text;
    this.#text = undefined;
    if (rest && rest.text !== '') this.#emitText(rest, rest.text);
  }

  #flushInPause(): void {
    const rest = this.#text;
    this.flush();
    if (rest && rest.text !== '') this.#text = { ...rest, text: '', isRest: true };
  }

  #emitText({ type, isRest }: Pending, text: string): void {
    this.parts.emit(isRest ? { type, text, isRest } : { type, text });
  }

  async #resume({ agentCapabilities }: InitializeResponse, sessionId: string): Promise<boolean> {
    const { cwd } = this.parts.launch;
    const canResume = !!agentCapabilities?.sessionCapabilities?.resume;
    if (!canResume && !agentCapabilities?.loadSession) return false;
    const request = { sessionId, cwd, mcpServers: [] };
    // The agent replays the conversation, which is already in the output.
    this.#isLoading = true;
    try {
      const { resume, load } = methods.agent.session;
      const method = canResume ? resume : load;
      const opened = await this.#agent!.request<LoadSessionResponse | null>(method, request);
      this.#set({ sessionId, ...offersIn(opened ?? {}) });
      return true;
    } catch (error) {
      const text = `The session ${sessionId} cannot be continued: ${errorText(error)}`;
      this.#emit({ type: 'log', text });
      return false;
    } finally {
      this.#isLoading = false;
    }
  }

  async #newSession({ authMethods = [] }: InitializeResponse): Promise<void> {
    const { cwd } = this.parts.launch;
    try {
      const opened = await this.#agent!.request(methods.agent.session.new, { cwd, mcpServers: [] });
      this.#set({ sessionId: opened.sessionId, ...offersIn(opened) });
    } catch (error) {
      const isLogin = error instanceof RequestError && error.code === authRequired;
      if (!isLogin) throw error;
      const names = authMethods.map(({ name }) => name).join(', ');
      throw new Error(`it is not logged in (${names || errorText(error)})`, { cause: error });
    }
  }

  /** Selects the requested model and mode among those that the agent offers. */
  async #choose(): Promise<void> {
    const { model } = this.parts.launch;
    const { sessionId, modelConfigId, ...offered } = this.#state;
    const mode = this.parts.launch.mode ?? this.#askingMode();
    if (model !== null && model !== offered.model) {
      checkOffered('model', model, offered.models);
      const request = { sessionId: sessionId!, configId: modelConfigId!, value: model };
      const { configOptions } = await this.#agent!.request<SetSessionConfigOptionResponse>(
        methods.agent.session.setConfigOption,
        request,
      );
      this.#set(withConfig(this.#state, configOptions));
    }
    if (mode !== null && mode !== offered.mode) {
      checkOffered('mode', mode, offered.modes);
      const request = { sessionId: sessionId!, modeId: mode };
      await this.#agent!.request(methods.agent.session.setMode, request);
      this.#set({ mode });
    }
  }

  /** The mode to use instead of one in which the agent does not ask for permissions. */
  #askingMode(): string | null {
    const { mode, modes } = this.#state;
    const instead = this.parts.launch.modeInstead?.[mode ?? ''];
    return modes.some(({ id }) => id === instead) ? instead! : null;
  }

  #prompt(text: string): void {
    this.#prompts.push(text);
    if (!this.#isRunning) void this.#runTurns();
  }

  async #runTurns(): Promise<void> {
    this.#isRunning = true;
    for (let text = this.#prompts.shift(); text !== undefined; text = this.#prompts.shift()) {
      await this.#runTurn(text);
    }
    this.#isRunning = false;
    this.#set({ status: 'idle' });
  }

  async #runTurn(text: string): Promise<void> {
    const turns = this.#state.turns + 1;
    this.#tools.clear();
    this.#reported.clear();
    this.#emit({ type: 'prompt', text });
    this.#set({ status: 'working', turns, failure: null, stopReason: null, doing: null });
    try {
      const { stopReason } = await this.#agent!.request(methods.agent.session.prompt, {
        sessionId: this.#state.sessionId!,
        prompt: [{ type: 'text', text }],
      });
      this.#emit({ type: 'stop', reason: stopReason });
      this.#endTurn(stopReason, this.#failureOf(stopReason));
    } catch (error) {
      this.#emit({ type: 'error', text: errorText(error) });
      this.#endTurn('error', errorText(error));
    }
  }

  #failureOf(stopReason: string): string | null {
    if (stopReason === 'cancelled') return null;
    const isWell = stopReason === 'end_turn';
    return this.#reported.text ?? (isWell ? null : `the turn ended with ${stopReason}`);
  }

  #endTurn(stopReason: string, failure: string | null): void {
    for (const id of this.#waiting.keys()) this.#settle(id, cancelled);
    const at = this.parts.clock.now();
    this.#set({
      stopReason,
      doing: null,
      failure: failure === null ? null : { text: failure, at },
    });
  }

  #cancel(): void {
    this.#prompts.length = 0;
    if (!this.#isRunning) return;
    for (const id of this.#waiting.keys()) this.#settle(id, cancelled);
    const { sessionId } = this.#state;
    this.#agent!.notify(methods.agent.session.cancel, { sessionId: sessionId! }).catch(
      (error: unknown) => this.fail(error),
    );
  }

  #answer(id: string, option: string): HostReply {
    const waiting = this.#waiting.get(id);
    if (!waiting) return { reply: 'gone' };
    const chosen = waiting.permission.options.find((each) => each.id === option);
    if (!chosen) return { reply: 'refused', detail: `there is no option ${option}` };
    const { title } = waiting.permission;
    this.#emit({ type: 'answer', id, title, label: chosen.label });
    this.#settle(id, { outcome: { outcome: 'selected', optionId: option } });
    return { reply: 'taken' };
  }

  #settle(id: string, response: RequestPermissionResponse): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    this.#showWaiting();
    waiting.resolve(response);
  }

  #showWaiting(): void {
    const permissions = [...this.#waiting.values()].map(({ permission }) => permission);
    const status = permissions.length > 0 ? 'waiting' : this.#isRunning ? 'working' : 'idle';
    this.#set({ permissions, status });
  }

  /** Writes complete lines, so that live output is rarely cut inside a word. */
  #addText(type: 'message' | 'thought', text: string, id: string | null): void {
    if (this.#text && (this.#text.type !== type || this.#text.id !== id)) this.flush();
    const pending = this.#text ?? { type, id, text: '', isRest: false };
    const whole = pending.text + text;
    const end = whole.lastIndexOf('\n');
    if (end !== -1) this.#emitText(pending, whole.slice(0, end + 1));
    const isRest = pending.isRest && end === -1;
    this.#text = { type, id, text: whole.slice(end + 1), isRest };
    this.#pause?.cancel();
    this.#pause = this.parts.clock.after(pauseMs, () => this.#flushInPause());
  }

  #emit(event: HostEvent): void {
    this.flush();
    this.parts.emit(event);
  }

  #set(change: Partial<HostState>): void {
    this.#state = { ...this.#state, ...change };
    this.parts.onState(this.#state);
  }
}

/** JSON-RPC code of the protocol for a session that needs a login. */
const authRequired = -32_000;

function planEntry({ content, status }: { content: string; status: string }) {
  return { content, status };
}

function checkOffered(what: string, wanted: string, offered: readonly { id: string }[]): void {
  if (offered.some(({ id }) => id === wanted)) return;
  const names = offered.map(({ id }) => id).join(', ');
  throw new Error(
    names === ''
      ? `the agent offers no choice of ${what}s`
      : `the agent does not offer the ${what} "${wanted}", but: ${names}`,
  );
}

/** Agents put the reason into `data`, or into the message itself. */
export function errorText(error: unknown): string {
  const text = messageOf(error);
  if (!(error instanceof RequestError)) return text;
  const { data } = error;
  if (typeof data === 'string') return `${text}: ${data}`;
  const { details, message } = (data ?? {}) as { details?: unknown; message?: unknown };
  const more = [details, message].find((each) => typeof each === 'string');
  return more === undefined ? text : `${text}: ${more}`;
}
