import {
  type FieldValue,
  type FieldValues,
  labelIn,
  type ProfileField,
} from '../../../server/shared/profile-fields.ts';
import { date, decimalSign } from '../language/format.ts';
import { language, text } from '../language/texts.ts';
import { settings } from '../settings.ts';
import { CheckBox, SelectField, TextArea, TextField } from './fields.tsx';
import type { FieldState } from './use-form.ts';

/** The operator's own fields (PROFILE_FIELDS) in forms, as texts by the names that the service uses in its errors. */

export type OwnName = `fields.${string}`;

export const ownFields = settings.profileFields ?? [];
export const writtenFields = ownFields.filter(({ write }) => write === 'owner');
export const requiredFields = ownFields.filter(({ required }) => required);

export const nameOf = ({ name }: ProfileField): OwnName => `fields.${name}`;
export const labelOf = (field: ProfileField): string => labelIn(field, language);

function asText(value: FieldValue | null | undefined): string {
  if (typeof value === 'number') return String(value).replace('.', decimalSign);
  return value === true ? 'ticked' : value === false || value == null ? '' : value;
}

/** The texts of a form. */
export const textsOf = (fields: readonly ProfileField[], values: FieldValues = {}): Record<OwnName, string> =>
  Object.fromEntries(fields.map((field) => [nameOf(field), asText(values[field.name])]));

/** For readers. Empty if the field is unset. */
export function valueText({ type }: ProfileField, value: FieldValue | null | undefined): string {
  if (value == null) return '';
  if (type === 'boolean') return text(value === true ? 'common.yes' : 'common.no');
  return type === 'date' ? date(Date.parse(`${value}T12:00:00`) / 1000) : asText(value);
}

/** NaN if the text has a sign between groups of digits: `1.000` is a thousand in German, and one in English. */
const numberIn = (typed: string): number =>
  Number(decimalSign !== '.' && typed.includes('.') ? Number.NaN : typed.replace(decimalSign, '.'));

/** The value to send. It refuses a text that is not a number, so that text is sent unchanged. */
function asValue({ type }: ProfileField, typed: string): FieldValue | null {
  if (type === 'boolean') return typed !== '';
  if (typed.trim() === '') return null;
  const found = numberIn(typed);
  return type === 'number' && Number.isFinite(found) ? found : typed;
}

/** The values of the fields with a changed text, so that an unset box stays unset. */
export const changedValues = (
  fields: readonly ProfileField[],
  typed: Record<OwnName, string>,
  before: Record<OwnName, string>,
): FieldValues =>
  Object.fromEntries(
    fields
      .filter((field) => typed[nameOf(field)] !== before[nameOf(field)])
      .map((field) => [field.name, asValue(field, typed[nameOf(field)] ?? '')]),
  );

/** The values of a new user; an unchecked required box is an answer too. */
export const newValues = (typed: Record<OwnName, string>): FieldValues =>
  Object.fromEntries(requiredFields.map((field) => [field.name, asValue(field, typed[nameOf(field)] ?? '')]));

/** The messages for required fields that are empty. */
export const missingFields = (): Record<OwnName, string> =>
  Object.fromEntries(
    requiredFields
      .filter(({ type }) => type !== 'boolean')
      .map((field) => [nameOf(field), text('common.rules.missing')]),
  );

/** The allowed range, as it can be typed. */
function rangeOf({ min, max }: ProfileField): string | undefined {
  if (min === undefined) return max === undefined ? undefined : text('common.range.to', { max: asText(max) });
  if (max === undefined) return text('common.range.from', { min: asText(min) });
  return `${asText(min)} – ${asText(max)}`;
}

const inputOf = { text: 'text', number: 'number', date: 'date', url: 'url' } as const;

interface OwnFieldProps {
  of: ProfileField;
  field: FieldState;
  /** Whether a required field says so: where others are optional. */
  marksRequired?: boolean;
}

export function OwnField({ of, field, marksRequired = false }: OwnFieldProps) {
  const label = labelOf(of);
  const hint = [marksRequired && of.required && text('common.required'), rangeOf(of)].filter(Boolean).join(' · ');
  switch (of.type) {
    case 'longText':
      return <TextArea field={field} label={label} rows={4} hint={hint} />;
    case 'boolean':
      return (
        <CheckBox field={field} isOptional>
          {label}
        </CheckBox>
      );
    case 'choice': {
      const choices = (of.choices ?? []).map((choice) => [choice, choice] as const);
      return (
        <SelectField field={field} label={label} options={[['', text('common.noChoice')], ...choices]} hint={hint} />
      );
    }
    default:
      return <TextField field={field} label={label} type={inputOf[of.type]} autocomplete="off" hint={hint} />;
  }
}
