import { Group } from './group.tsx';
import { tokens } from './schemes.ts';

/** The colours by role, and the steps of space and type, as the style sheet has them. */
export function Scales() {
  const all = tokens();
  const colours = all.filter(({ value }) => CSS.supports('color', value));
  const sizes = all.filter(({ value }) => CSS.supports('width', value));
  const named = (start: string) => sizes.filter(({ name }) => name.startsWith(start));
  return (
    <>
      <Group title="Colours by role">
        <p class="samples">
          {colours.map(({ name }) => (
            <span key={name}>
              <span class="swatch" style={{ background: `var(${name})` }} /> {name.slice(2)}
            </span>
          ))}
        </p>
      </Group>
      <Group title="Space">
        <p class="samples">
          {named('--space-').map(({ name, value }) => (
            <span key={name}>
              <span class="swatch" style={{ width: `var(${name})`, minWidth: 0 }} /> {name.slice(2)} {value}
            </span>
          ))}
        </p>
      </Group>
      <Group title="Type">
        {named('--text-').map(({ name, value }) => (
          <p key={name} style={{ fontSize: `var(${name})` }}>
            {name.slice(2)} {value}
          </p>
        ))}
      </Group>
    </>
  );
}
