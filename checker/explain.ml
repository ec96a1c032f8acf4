open Refusal
let refusal _ _ claims = Array.iter (function Error what -> raise (Not_proved what) | Ok _ -> ()) claims; refuse "not accepted"
