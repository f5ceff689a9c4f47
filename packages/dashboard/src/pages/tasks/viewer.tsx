import { useState } from 'react';
import { Choice } from '../../parts/choice.js';
import { bytes } from '../../parts/format.js';
import { hexOf, jsonOf, textOf } from './content.js';
import { JsonTree } from './json-tree.js';

type View = 'tree' | 'text' | 'hex';

interface ViewerProps {
  title: string;
  content: Uint8Array;
  /** The media type. */
  type: string;
}

/** Content as a JSON tree, as text or as bytes. */
export function Viewer({ title, content, type }: ViewerProps) {
  const text = textOf(content);
  const json = text === undefined ? undefined : jsonOf(text.whole);
  const [chosen, setChosen] = useState<View>();
  const isObject = json !== undefined && typeof json.value === 'object' && json.value !== null;
  const view = chosen ?? (isObject ? 'tree' : text ? 'text' : 'hex');
  const options = { ...(isObject && { tree: 'Tree' }), ...(text && { text: 'Text' }), hex: 'Hex' };
  return (
    <section aria-label={title} className="stack">
      <div className="row viewer-head">
        <h3>
          {title} <span className="muted">{`${bytes(content.length)}, ${type}`}</span>
        </h3>
        <Choice<View> label={`${title} view`} value={view} options={options} onChange={setChosen} />
      </div>
      {view === 'tree' && json && <JsonTree value={json.value} />}
      {view === 'text' && text && (
        <>
          <pre className="task-payload" tabIndex={0}>
            {text.shown}
          </pre>
          {text.isCut && <p className="muted">Truncated.</p>}
        </>
      )}
      {view === 'hex' && <Hex content={content} />}
    </section>
  );
}

function Hex({ content }: { content: Uint8Array }) {
  const { text, isCut } = hexOf(content);
  return (
    <>
      <pre className="task-payload viewer-hex" tabIndex={0}>
        {text}
      </pre>
      {isCut && <p className="muted">Truncated.</p>}
    </>
  );
}
