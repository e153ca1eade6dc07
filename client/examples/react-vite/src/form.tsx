import { type FormEvent, type ReactNode, useState } from 'react';
import { type Refusal, refusalIn } from './accounts.ts';

interface Props {
  title: string;
  /** The fields by name, with label and type. */
  fields: Record<string, { label: string; type: string; autoComplete: string; value?: string }>;
  submit: string;
  send(values: Record<string, string>): Promise<unknown>;
  onInput?: (name: string, value: string) => void;
  children?: ReactNode;
}

/** A form that shows each error of the service at its field. */
export function Form({ title, fields, submit, send, onInput, children }: Props) {
  const [refusal, setRefusal] = useState<Refusal>();
  const [isBusy, setBusy] = useState(false);

  const onSubmit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const values = Object.fromEntries(
      [...new FormData(event.currentTarget)].map(([name, value]) => [name, `${value}`]),
    );
    setRefusal(undefined);
    setBusy(true);
    await send(values).catch((error: unknown) => setRefusal(refusalIn(error)));
    setBusy(false);
  };

  return (
    <form onSubmit={(event) => void onSubmit(event)}>
      <h1>{title}</h1>
      {refusal && <p role="alert">{refusal.message}</p>}
      {Object.entries(fields).map(([name, { label, value, ...attributes }]) => (
        <p key={name}>
          <label>
            {label}{' '}
            <input
              {...attributes}
              name={name}
              defaultValue={value}
              onInput={(event) => onInput?.(name, event.currentTarget.value)}
            />
          </label>{' '}
          {refusal?.fields[name]}
        </p>
      ))}
      {children}
      <button type="submit" disabled={isBusy}>
        {submit}
      </button>
    </form>
  );
}
