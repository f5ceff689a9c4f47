import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeModelOptions {
  protocol: 'ollama' | 'openai';
  models?: readonly string[];
  /** What it answers to a prompt; a number is an HTTP status without an answer. */
  answer?: (prompt: string, model: string) => string | number;
  /** Token counts that it reports with an answer; default: none. */
  tokens?: { input: number; output: number };
  /** Never answers a prompt. */
  hangs?: boolean;
}

/** A local model on loopback: the shapes of Ollama, or those of OpenAI that others speak. */
export class FakeModel {
  readonly requests: { path: string; body: any }[] = [];

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(options: FakeModelOptions): Promise<FakeModel> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const fake = new FakeModel(server, `http://127.0.0.1:${port}`);
    server.on('request', (request, response) => {
      void fake.#reply(request, options).then((reply) => {
        if (!reply) return;
        response.writeHead(reply.status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(reply.body));
      });
    });
    return fake;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #reply(request: IncomingMessage, options: FakeModelOptions) {
    const { protocol, models = ['llama'], answer = () => 'from the local model' } = options;
    const path = request.url!;
    const lists = {
      ollama: { path: '/api/tags', body: { models: models.map((name) => ({ name })) } },
      openai: { path: '/v1/models', body: { object: 'list', data: models.map((id) => ({ id })) } },
    };
    if (path === lists[protocol].path) return { status: 200, body: lists[protocol].body };
    if (path !== { ollama: '/api/generate', openai: '/v1/chat/completions' }[protocol]) {
      return { status: 404, body: { error: 'not found' } };
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    this.requests.push({ path, body });
    if (options.hangs) return undefined;
    const text = answer(body.prompt ?? body.messages[0].content, body.model);
    if (typeof text === 'number') return { status: text, body: { error: 'no' } };
    const { input: prompt_tokens, output: completion_tokens } = options.tokens ?? {};
    const shapes = {
      ollama: {
        model: body.model,
        response: text,
        done: true,
        prompt_eval_count: prompt_tokens,
        eval_count: completion_tokens,
      },
      openai: {
        choices: [{ index: 0, message: { role: 'assistant', content: text } }],
        usage: { prompt_tokens, completion_tokens },
      },
    };
    return { status: 200, body: shapes[protocol] };
  }
}
