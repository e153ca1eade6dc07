import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Refusal, refusalIn } from '../api.ts';
import { keepDraft, readDraft } from '../draft.ts';
import { time } from '../in-readers-language.ts';
import { text } from '../texts.ts';

/** Where a refusal is shown: at one field, or else for the whole form. */
export interface Problem<Name extends string> {
  field?: Name;
  message: ComponentChildren;
}

export interface FormOptions<Name extends string> {
  initial: Record<Name, string>;
  /** The messages for fields that are left empty. */
  required?: Partial<Record<NoInfer<Name>, string>>;
  /** The messages for values that must not be sent, by field. */
  check?: (values: Record<NoInfer<Name>, string>) => Partial<Record<NoInfer<Name>, string>>;
  /** Keeps the text of these fields, and restores it. */
  draft?: { key: string; names: NoInfer<Name>[] };
  /** Resolves to the new values of the fields, where they may differ from the typed ones. */
  send(values: Record<NoInfer<Name>, string>): Promise<Record<NoInfer<Name>, string> | undefined>;
  /** A message of the form's own for a refusal. */
  explain?: (refusal: Refusal) => Problem<NoInfer<Name>> | undefined;
}

export type FieldState = {
  name: string;
  value: string;
  error: ComponentChildren;
  onInput(value: string): void;
};

/** The state of a form: its values, its submission and its errors; a refusal focuses the first wrong field. */
export function useForm<Name extends string>({ initial, required, check, draft, send, explain }: FormOptions<Name>) {
  const [values, setValues] = useState<Record<Name, string>>(() => ({ ...initial, ...kept(draft) }));
  const [errors, setErrors] = useState<Partial<Record<Name, ComponentChildren>>>({});
  const [problem, setProblem] = useState<ComponentChildren>();
  const [isBusy, setBusy] = useState(false);
  const [refusals, setRefusals] = useState(0);
  const element = useRef<HTMLFormElement>(null);

  // Moves the focus once per refused attempt, not when an error goes away.
  useLayoutEffect(() => {
    element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refusals]);

  const refuse = (found: Partial<Record<Name, ComponentChildren>>) => {
    setErrors(found);
    setRefusals((count) => count + 1);
    return Object.keys(found).length > 0;
  };

  const submit = async () => {
    if (isBusy) return;
    setProblem(undefined);
    if (refuse({ ...check?.(values), ...empty(values, required) })) return;
    setBusy(true);
    try {
      const stored = await send(values);
      if (stored) setValues(stored);
    } catch (error) {
      const refusal = refusalIn(error);
      const own = explain?.(refusal);
      if (own?.field) refuse({ [own.field]: own.message } as Partial<Record<Name, ComponentChildren>>);
      else if (own || !refuse(messagesIn(refusal, values))) setProblem(own?.message ?? sentenceFor(refusal));
    } finally {
      setBusy(false);
    }
  };

  return {
    values,
    isBusy,
    /** The properties of `Form`. */
    form: {
      element,
      problem,
      onSubmit(event: Event) {
        event.preventDefault();
        void submit();
      },
    },
    field: (name: Name): FieldState => ({
      name,
      value: values[name],
      error: errors[name],
      onInput(value) {
        setValues((current) => ({ ...current, [name]: value }));
        setErrors((current) => ({ ...current, [name]: undefined }));
        if (draft?.names.includes(name)) keepDraft(draft.key, { [name]: value });
      },
    }),
  };
}

function kept<Name extends string>(draft: FormOptions<Name>['draft']): Partial<Record<Name, string>> {
  if (!draft) return {};
  const read = readDraft(draft.key);
  const entries = draft.names.filter((name) => name in read).map((name) => [name, read[name]]);
  return Object.fromEntries(entries);
}

function empty<Name extends string>(values: Record<Name, string>, required: FormOptions<Name>['required'] = {}) {
  const entries = Object.entries(required).filter(([name]) => values[name as Name].trim() === '');
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

/** What is wrong with the fields of this form. */
function messagesIn<Name extends string>({ details }: Refusal, values: Record<Name, string>) {
  const entries = Object.entries(details).filter(([name]) => name in values);
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

/** The sentence that users read about a refusal; for a limit with the time of the next attempt. */
export const sentenceFor = ({ code, message, retryAt }: Refusal): string =>
  code === 'RATE_LIMITED' && retryAt ? text('common.rateLimited', { time: time(retryAt) }) : message;
