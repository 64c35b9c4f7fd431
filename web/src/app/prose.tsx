// Sentences of reports: text in backticks is code, names may break between their parts.

import { Fragment } from "preact";
import type { DocumentNote } from "../profile/document.ts";
import { exactly } from "../search.ts";
import { linkTo } from "./state.ts";

/** A sentence; text in backticks is code. */
export function Prose({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, index) => (index % 2 ? <Code key={index} text={part} /> : part))}</>;
}

/** Code; the command that explains a function leads to the function. */
function Code({ text }: { text: string }) {
  const code = <code><Name text={text} /></code>;
  const explained = /^stepscope explain '(.+)' \S+$/.exec(text)?.[1];
  if (!explained) return code;
  return <a class="explains" href={linkTo({ screen: "explore", function: explained, search: exactly(explained) })}>{code}</a>;
}

/** A name, with permission to break lines between the parts of a qualified one, or of a path, and none after the dashes of an option. */
export function Name({ text }: { text: string }) {
  const parts = text.split(/(?<=::|\/)|(?<=\s)(?=-)|(?<=(?:^|\s)-[\w-]*)(?=[\s=])/);
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {/^-[\w-]+$/.test(part) ? <span class="option">{part}</span> : part}
        </Fragment>
      ))}
    </>
  );
}

/** Notes, losses as warnings. */
export function Notes({ notes }: { notes: DocumentNote[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map(({ kind, text }, index) => (
        <li key={index} class={kind}>
          {kind === "loss" && <b>Warning: </b>}
          <Prose text={text} />
        </li>
      ))}
    </ul>
  );
}
