import { useState } from 'preact/hooks';
import { type FormOptions, useForm } from './form/use-form.ts';

/**
 * The parameters of the mailed link that led here. The shell has moved them from the address into this entry of the
 * tab's history, so that the token is in no request, no bookmark and not on the screen, while a reload still works.
 */
export function mailedLink(): URLSearchParams {
  const state: unknown = history.state;
  const isOurs = typeof state === 'object' && state !== null && 'mailedLink' in state;
  return new URLSearchParams(isOurs ? String(state.mailedLink) : '');
}

interface Options<Name extends string, Outcome> extends Omit<FormOptions<Name>, 'send'> {
  /** Uses the token. */
  send(token: string, values: Record<NoInfer<Name>, string>): Promise<Outcome>;
}

/**
 * The form of a page that a mailed link opens. Opening it changes nothing, because mail scanners open links too; sending the
 * form does, and `outcome` is the answer then. `isRefused`: the link has no token, or the service does not accept it.
 */
export function useMailedLink<Name extends string, Outcome extends object>({
  send,
  explain,
  ...options
}: Options<Name, Outcome>) {
  const token = mailedLink().get('token') ?? '';
  const [isRefused, setRefused] = useState(token === '');
  const [outcome, setOutcome] = useState<Outcome>();
  const form = useForm({
    ...options,
    async send(values) {
      setOutcome(await send(token, values));
      return undefined;
    },
    explain(refusal) {
      if (refusal.code === 'INVALID_TOKEN') setRefused(true);
      return explain?.(refusal);
    },
  });
  return { ...form, token, isRefused, outcome };
}
