(* Reads a table, a table of an account or a certificate a line, as proofs/terms.py writes it, and
   prints what the extracted checker says of it. *)
open Checkers

let tokens = ref []

let next () =
  match !tokens with
  | [] -> failwith "the line is too short"
  | token :: rest -> tokens := rest; token

let number () =
  let found = Big_int_Z.big_int_of_string (next ()) in
  if Big_int_Z.sign_big_int found < 0 then failwith "a number is below 0" else found

let pair () =
  let first = number () in
  let second = number () in
  (first, second)

let list element =
  let length = int_of_string (next ()) in
  List.init length (fun _ -> element ())

let table () =
  let epsilon = pair () in
  let delta = pair () in
  let cutoff = number () in
  let order = pair () in
  let ratio = pair () in
  let growth = pair () in
  let growth_terms = number () in
  let hits_share = pair () in
  let release_share = pair () in
  let words = list number in
  { epsilon; delta; cutoff; order; ratio; growth; growth_terms; hits_share; release_share; words }

let certificate () =
  let budget_epsilon = pair () in
  let budget_delta = pair () in
  let factor_terms = number () in
  let node_unit = number () in
  let slope_unit = number () in
  let factor = number () in
  let functions = list (fun () -> list pair) in
  let entries = list number in
  { budget_epsilon; budget_delta; factor_terms; node_unit; slope_unit; factor; functions; entries }

let verdict () =
  match next () with
  | "table" -> let read = table () in fun () -> check_table read
  | "account" ->
      let read = table () in
      let moment = pair () in
      let total = pair () in
      fun () -> check_shared_table read moment total
  | "certificate" -> let read = certificate () in fun () -> sweep_certificate read
  | kind -> failwith ("no checker of a " ^ kind)

let () =
  try
    while true do
      tokens := String.split_on_char ' ' (input_line stdin);
      let decide = verdict () in
      if !tokens <> [] then failwith "the line is too long";
      print_endline (if decide () then "accepted" else "refused")
    done
  with End_of_file -> ()
