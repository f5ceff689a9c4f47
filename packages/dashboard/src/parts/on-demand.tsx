import { useEffect, useState, type ComponentType } from 'react';
import { Loading } from './states.js';

/**
 * A component whose code is loaded when it is first shown. React's `lazy` would show its fallback
 * for at least 300 ms, also when the code is there after ten.
 */
export function onDemand<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  { rows = 4 } = {},
): ComponentType<Props> {
  let Content: ComponentType<Props> | undefined;
  return function OnDemand(props: Props) {
    const [, setIsLoaded] = useState(Content !== undefined);
    const [failure, setFailure] = useState<{ error: unknown }>();
    useEffect(() => {
      if (Content) return;
      load().then(
        (module) => {
          Content = module.default;
          setIsLoaded(true);
        },
        (error: unknown) => setFailure({ error }),
      );
    }, []);
    if (failure) throw failure.error;
    return Content ? <Content {...props} /> : <Loading rows={rows} />;
  };
}
