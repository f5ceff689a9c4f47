import { rolldown } from 'rolldown';

const name = 'script';

/**
 * A script that imports sources, as one text that Node 20 can run, which reads no TypeScript. It
 * goes to `node --input-type=module -` on its input; packages are then found from its directory.
 */
export async function scriptFrom(source: string): Promise<string> {
  const bundle = await rolldown({
    input: name,
    platform: 'node',
    external: (id) => /^[^./]/.test(id) && id !== name && !id.startsWith('@millrace/'),
    resolve: { conditionNames: ['millrace-source', 'node', 'module', 'import', 'default'] },
    plugins: [
      {
        name,
        resolveId: (id) => (id === name ? id : null),
        load: (id) => (id === name ? source : null),
      },
    ],
  });
  try {
    const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
    return output[0].code;
  } finally {
    await bundle.close();
  }
}
